//! The presets, tested with the real agent programs against a stub model server on loopback.
//!
//! `cargo xtask agents` installs the programs and runs these tests; `cargo test` leaves them out. Each program has a module with the
//! common tests; some have more.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `stub/` | the model server |
//! | `programs.rs` | how each program is pointed at it |
//! | `bench.rs` | a project in a directory of its own, and Lockgate run in it |
//! | `turns.rs`, `sessions.rs`, `refusals.rs` | the tests |

mod bench;
mod programs;
mod refusals;
mod sessions;
mod stub;
mod turns;

/// The tests of one program.
macro_rules! tests {
    ($program:ident: $($file:ident::$test:ident),+) => {
        mod $program {
            $(#[test]
            fn $test() {
                crate::$file::$test(crate::programs::$program);
            })+
        }
    };
}

/// The tests of every program, and further ones.
macro_rules! tests_of {
    ($program:ident $(, $file:ident::$test:ident)*) => {
        tests! {
            $program:
                turns::a_text_turn_becomes_the_answer,
                turns::a_tool_turn_does_its_work_and_is_counted,
                turns::a_prompt_of_300_kilobytes_arrives_whole,
                turns::a_prompt_that_starts_with_a_dash_is_passed_as_an_argument,
                turns::a_turn_that_does_not_end_is_timed_out_with_all_that_it_started,
                sessions::tasks_share_a_session_and_each_turn_counts_once_towards_the_budget,
                sessions::only_a_named_session_is_resumed_after_kill_9,
                sessions::a_session_that_was_never_named_is_not_resumed_after_kill_9,
                refusals::a_refused_key_opens_a_login_hold_and_the_task_continues_after_it,
                refusals::a_missing_key_opens_a_login_hold,
                refusals::an_unauthorized_request_of_a_tool_is_not_a_missing_login,
                refusals::denied_tools_are_shown_as_a_warning
                $(, $file::$test)*
        }
    };
}

tests_of!(codex);
tests_of!(opencode);
tests_of!(gemini, refusals::tools_that_a_task_allows_can_be_used_and_those_that_it_denies_cannot);
tests_of!(qwen);
tests_of!(claude, refusals::tools_that_a_task_allows_can_be_used_and_those_that_it_denies_cannot);
tests_of!(claude_older, refusals::tools_that_a_task_allows_can_be_used_and_those_that_it_denies_cannot);
tests_of!(copilot, refusals::tools_that_a_task_allows_can_be_used_and_those_that_it_denies_cannot);
