//! What a watcher asks a run, over HTTP on 127.0.0.1.

use balar_live::state::LiveState;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::Ipv4Addr;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an event at most: one that goes on for longer is none of ours.
const EVENT_BYTES: usize = 16 << 20;

/// Asks a run.
#[derive(Clone, Debug)]
pub struct Client {
    port: u16,
    token: String,
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

impl Client {
    /// Of the run that listens on a port.
    ///
    /// # Errors
    ///
    /// If the token is none.
    pub fn new(port: u16, token: &str) -> io::Result<Client> {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its shared memory has no token"));
        }
        Ok(Client { port, token: token.to_owned() })
    }

    /// How the run is.
    ///
    /// # Errors
    ///
    /// If it does not answer.
    pub fn state(&self) -> io::Result<LiveState> {
        let text = self.ask(Method::GET, "/api/state")?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }

    /// Tells the run to pause, resume or step.
    ///
    /// # Errors
    ///
    /// What the run answers instead.
    pub fn order(&self, path: &str) -> io::Result<()> {
        self.ask(Method::POST, path).map(|_| ())
    }

    fn ask(&self, method: Method, path: &str) -> io::Result<Bytes> {
        runtime()?.block_on(async {
            let asked = async {
                let answer = self.send(method, path).await?;
                let status = answer.status();
                let body =
                    Limited::new(answer.into_body(), EVENT_BYTES).collect().await.map_err(io::Error::other)?.to_bytes();
                if status.is_success() {
                    return Ok(body);
                }
                Err(io::Error::other(String::from_utf8_lossy(&body).trim().to_owned()))
            };
            tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        })
    }

    /// The states of the run as it publishes them, up to the last one. Nothing more comes when the run is gone.
    ///
    /// # Errors
    ///
    /// If there is no thread for it.
    pub fn follow(&self) -> io::Result<Receiver<LiveState>> {
        let (sender, receiver) = mpsc::channel();
        let client = self.clone();
        std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
            let Ok(runtime) = runtime() else { return };
            runtime.block_on(async {
                let Ok(answer) = client.send(Method::GET, "/api/events").await else { return };
                let mut body = answer.into_body();
                let mut unread = Vec::new();
                // No event ends before this place.
                let mut searched = 0;
                while let Some(Ok(frame)) = body.frame().await {
                    unread.extend_from_slice(frame.data_ref().map(|data| &data[..]).unwrap_or_default());
                    while let Some(end) = unread[searched..].windows(2).position(|two| two == b"\n\n") {
                        let event: Vec<u8> = unread.drain(..searched + end + 2).collect();
                        searched = 0;
                        let state = event.strip_prefix(b"data: ").and_then(|text| serde_json::from_slice(text).ok());
                        // The receiver is gone with the screen.
                        if state.is_some_and(|state| sender.send(state).is_err()) {
                            return;
                        }
                    }
                    if unread.len() > EVENT_BYTES {
                        return;
                    }
                    searched = unread.len().saturating_sub(1);
                }
            });
        })?;
        Ok(receiver)
    }

    async fn send(&self, method: Method, path: &str) -> io::Result<Response<Incoming>> {
        let stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(io::Error::other)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, format!("127.0.0.1:{}", self.port))
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Empty::<Bytes>::new())
            .map_err(io::Error::other)?;
        sender.send_request(request).await.map_err(io::Error::other)
    }
}
