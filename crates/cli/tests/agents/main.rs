//! Tests the presets with the real agent programs, against a stub model server on loopback.
//!
//! `cargo xtask agents` installs the programs and runs these tests; `cargo test` skips them. Each program has a module with the
//! common tests; some have more.
//!
//! | file | contents |
//! | --- | --- |
//! | `stub/` | the model server |
//! | `programs.rs` | how each program is configured for the stub |
//! | `harness.rs` | a project in a temporary directory, and running Lockgate in it |
//! | `turns.rs`, `sessions.rs`, `refusals.rs` | the tests |

mod harness;
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

/// The common tests of a program, and additional ones.
macro_rules! tests_of {
    ($program:ident $(, $file:ident::$test:ident)*) => {
        tests! {
            $program:
                turns::a_text_turn_becomes_the_answer,
                turns::a_tool_turn_runs_the_tool_and_is_counted,
                turns::a_prompt_of_300_kilobytes_arrives_whole,
                turns::a_prompt_that_starts_with_a_dash_is_passed_as_an_argument,
                turns::an_endless_turn_times_out_and_its_processes_are_stopped,
                sessions::tasks_share_a_session_and_each_turn_counts_once_towards_the_budget,
                sessions::only_a_reported_session_is_resumed_after_kill_9,
                sessions::an_unreported_session_is_not_resumed_after_kill_9,
                refusals::a_refused_key_opens_an_auth_gate_and_the_task_continues_after_it,
                refusals::a_missing_key_opens_an_auth_gate,
                refusals::an_unauthorized_request_of_a_tool_opens_no_auth_gate,
                refusals::denied_tools_are_shown_as_a_warning
                $(, $file::$test)*
        }
    };
}

tests_of!(codex);
tests_of!(opencode);
tests_of!(gemini, refusals::allowed_tools_can_be_used_and_denied_tools_cannot);
tests_of!(qwen);
tests_of!(claude, refusals::allowed_tools_can_be_used_and_denied_tools_cannot);
tests_of!(claude_older, refusals::allowed_tools_can_be_used_and_denied_tools_cannot);
tests_of!(copilot, refusals::allowed_tools_can_be_used_and_denied_tools_cannot);
