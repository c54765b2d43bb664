//! A stub model server on loopback, which implements the four APIs that the agent programs use.
//!
//! The prompt contains the script, so the server needs no session state: `%%[{"sh":"touch a"},{"text":"done"}]%%` makes the model
//! call its shell first and then say "done". The current step is the number of turns since the last user text with a script, so a
//! resumed session continues where it stopped.
//!
//! | step | behavior of the model |
//! | --- | --- |
//! | `{"text": "…"}` | says this, and ends its turn |
//! | `{"sh": "…"}` | calls its shell tool with this command |
//! | `{"status": 401}` | answers every request with this HTTP status |
//! | `{"wait": "…"}` | does not respond until [`Stub::release`] is called; later requests get this text |
//!
//! Each turn reports 100 input and 10 output tokens. A request without the right key gets a 401.

mod api;
mod http;

use api::Api;
use serde_json::Value;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The key that is accepted.
pub(crate) const KEY: &str = "the-right-key";

/// The usage that each turn reports.
const TOKENS: Tokens = Tokens { input: 100, output: 10 };

/// A server that runs until it is dropped.
pub(crate) struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    released: AtomicBool,
    closed: AtomicBool,
    seen: Mutex<Vec<Seen>>,
}

/// A request with a script.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The user's texts in this session, oldest first.
    pub(crate) user: Vec<String>,
    /// The number of turns since the script.
    pub(crate) step: usize,
}

/// A turn of a conversation.
enum Turn {
    User(String),
    Model,
}

/// A reply of the model.
enum Reply {
    Text(String),
    Call { tool: String, input: Value },
}

/// The usage that a turn reports.
#[derive(Clone, Copy)]
struct Tokens {
    input: u64,
    output: u64,
}

impl Stub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.closed.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), shared) = (stream, accepting.clone()) else { continue };
                // It is not an error if a client disconnects, as a killed agent does.
                std::thread::spawn(move || drop(shared.serve(&stream)));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Responds to waiting requests.
    pub(crate) fn release(&self) {
        self.shared.released.store(true, Ordering::SeqCst);
    }

    /// The requests with a script so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then exits.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let request = http::read(stream)?;
        let Some(api) = Api::of(&request.path) else {
            return http::respond(stream, 404, "application/json", r#"{"error":{"message":"no such path"}}"#);
        };
        let respond = |status, content_type, body: &str| http::respond(stream, status, content_type, body);
        if !request.headers.contains(KEY) {
            return respond(401, "application/json", &api.error(401));
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let (turns, tools) = (api.turns(&body), api.tools(&body));
        let scripted = turns.iter().rposition(|turn| matches!(turn, Turn::User(text) if script(text).is_some()));
        let answer = |reply: &Reply, tokens| {
            let content_type = api.content_type(&request.path);
            respond(200, content_type, &api.answer(&request.path, reply, tokens))
        };
        // Requests of the program itself, such as titles and routing, offer no tools. Their number is not specified, so they are
        // not counted.
        let (Some(at), false) = (scripted, tools.is_empty()) else {
            return answer(&Reply::Text("ok".to_owned()), Tokens { input: 0, output: 0 });
        };
        let users = turns.iter().filter_map(|turn| if let Turn::User(text) = turn { Some(text.clone()) } else { None });
        let user: Vec<String> = users.collect();
        let steps = user.iter().rev().find_map(|text| script(text)).unwrap_or_default();
        let step = turns[at..].iter().filter(|turn| matches!(turn, Turn::Model)).count();
        let reply = match steps.get(step) {
            None => Reply::Text("the script is over".to_owned()),
            Some(todo) => match (&todo["sh"], &todo["wait"], &todo["status"]) {
                (Value::String(command), _, _) => api::shell(&tools, command),
                (_, Value::String(text), _) if self.released.load(Ordering::SeqCst) => Reply::Text(text.clone()),
                (_, Value::String(_), _) => {
                    self.note(user, step);
                    return http::until_closed(stream);
                }
                (_, _, Value::Number(status)) => {
                    self.note(user, step);
                    let status = status.as_u64().unwrap_or(500);
                    return respond(status, "application/json", &api.error(status));
                }
                _ => Reply::Text(todo["text"].as_str().unwrap_or("the step is not known").to_owned()),
            },
        };
        self.note(user, step);
        answer(&reply, TOKENS)
    }

    fn note(&self, user: Vec<String>, step: usize) {
        self.seen.lock().unwrap().push(Seen { user, step });
    }
}

/// The steps between `%%` and `%%` in a text.
fn script(text: &str) -> Option<Vec<Value>> {
    let (_, rest) = text.split_once("%%[")?;
    let (steps, _) = rest.split_once("]%%")?;
    let read = |steps: &str| serde_json::from_str(&format!("[{steps}]")).ok();
    // opencode quotes arguments that contain spaces, and escapes quotes in them.
    read(steps).or_else(|| read(&steps.replace("\\\"", "\"")))
}
