//! The run over HTTP, on 127.0.0.1.

use super::access::{Refusal, parameter};
use super::connections::{Connections, Visitor};
use super::prometheus;
use super::shared::{Order, Shared};
use balar_protocol::SimTime;
use futures::future::{Either, select};
use futures::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, SET_COOKIE, WWW_AUTHENTICATE,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Bytes of the head of a request.
const HEAD_BYTES: usize = 16 << 10;
/// How long the head of a request may take to arrive.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long the server waits for a run that was asked what its units wait for.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// How far a step goes that does not say it.
const STEP: SimTime = SimTime(1_000_000);

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The rights of the page: it asks this server alone, and shows nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

type Body = BoxBody<Bytes, Infallible>;
type Answer = Response<Body>;

/// Takes connections, for as long as it is polled.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let connections = Arc::new(Connections::default());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, say: it may pass.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (visitor, sent_away) = connections.enter();
        tokio::spawn(talk(stream, visitor, sent_away, Arc::clone(&shared)));
    }
}

/// Answers the requests of a connection, unless it is sent away before it has shown the token.
async fn talk(stream: TcpStream, visitor: Visitor, sent_away: oneshot::Receiver<()>, shared: Arc<Shared>) {
    let visitor = Arc::new(visitor);
    let service = service_fn(move |request| {
        let (shared, visitor) = (Arc::clone(&shared), Arc::clone(&visitor));
        async move { Ok::<_, Infallible>(answer(&request, &shared, &visitor).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
    let connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A client that breaks off, or sends what is no request, has had its answer.
    match select(connection, sent_away).await {
        Either::Left(_) | Either::Right((Ok(()), _)) => {}
        // Nobody sends it away any more.
        Either::Right((Err(_), connection)) => drop(connection.await),
    }
}

/// The resources, by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Page,
    Style,
    Script,
    State,
    Events,
    Topology,
    Waiting,
    Metrics,
    Pause,
    Resume,
    Step,
}

impl Endpoint {
    fn of(path: &str) -> Option<Endpoint> {
        Some(match path {
            "/" => Endpoint::Page,
            "/page.css" => Endpoint::Style,
            "/page.js" => Endpoint::Script,
            "/api/state" => Endpoint::State,
            "/api/events" => Endpoint::Events,
            "/api/topology" => Endpoint::Topology,
            "/api/waiting" => Endpoint::Waiting,
            "/metrics" => Endpoint::Metrics,
            "/api/pause" => Endpoint::Pause,
            "/api/resume" => Endpoint::Resume,
            "/api/step" => Endpoint::Step,
            _ => return None,
        })
    }

    /// Does it change how the run goes on?
    fn is_order(self) -> bool {
        matches!(self, Endpoint::Pause | Endpoint::Resume | Endpoint::Step)
    }
}

async fn answer(request: &Request<Incoming>, shared: &Arc<Shared>, visitor: &Visitor) -> Answer {
    let query = request.uri().query();
    if let Err(refusal) = shared.access.check(request.headers(), query) {
        let status = if refusal == Refusal::NoToken { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
        let mut answer = plain(status, &format!("{refusal}\n"));
        if status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // A stranger has one answer.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return answer;
    }
    visitor.is_known().await;
    let Some(endpoint) = Endpoint::of(request.uri().path()) else {
        let text = "there is /, /metrics, /api/state, /api/events, /api/topology, /api/waiting, and to POST: /api/pause, \
                    /api/resume, /api/step?time=1us\n";
        return plain(StatusCode::NOT_FOUND, text);
    };
    let (allowed, is_allowed) = if endpoint.is_order() {
        ("POST", request.method() == Method::POST)
    } else {
        ("GET, HEAD", matches!(*request.method(), Method::GET | Method::HEAD))
    };
    if !is_allowed {
        let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, &format!("this takes {allowed}\n"));
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        return answer;
    }
    match endpoint {
        Endpoint::Page => {
            let mut answer = text("text/html; charset=utf-8", PAGE.to_owned());
            if let Ok(cookie) = HeaderValue::from_str(&shared.access.cookie()) {
                answer.headers_mut().insert(SET_COOKIE, cookie);
            }
            answer
        }
        Endpoint::Style => text("text/css; charset=utf-8", STYLE.to_owned()),
        Endpoint::Script => text("text/javascript; charset=utf-8", SCRIPT.to_owned()),
        Endpoint::Topology => text("image/svg+xml", shared.picture.clone()),
        Endpoint::State => text("application/json", shared.state().json()),
        Endpoint::Events => events(shared),
        Endpoint::Waiting => text("application/json", shared.waiting(ANSWER_TIME).await),
        Endpoint::Metrics => text(prometheus::CONTENT_TYPE, prometheus::text(&shared.state())),
        Endpoint::Pause => order(shared, Order::Pause).await,
        Endpoint::Resume => order(shared, Order::Resume).await,
        Endpoint::Step => match step(query) {
            Ok(time) => order(shared, Order::Step(time)).await,
            Err(problem) => plain(StatusCode::BAD_REQUEST, &format!("{problem}\n")),
        },
    }
}

/// How far a step goes.
fn step(query: Option<&str>) -> Result<SimTime, String> {
    let Some(given) = parameter(query, "time") else { return Ok(STEP) };
    match given.parse::<SimTime>() {
        Ok(SimTime::ZERO) => Err("a step takes more than no time".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("time: {error}")),
    }
}

async fn order(shared: &Arc<Shared>, order: Order) -> Answer {
    match shared.order(order).await {
        Ok(held) => text("application/json", format!("{{\"held\":{held}}}")),
        Err(problem) => plain(StatusCode::CONFLICT, &format!("{problem}\n")),
    }
}

/// Each state as it is published, as an event of its own, up to the last one, which says how the run ended.
fn events(shared: &Arc<Shared>) -> Answer {
    let mut states = shared.states();
    states.mark_changed();
    let events = stream::unfold(Some(states), |states| async move {
        let mut states = states?;
        states.changed().await.ok()?;
        let state = Arc::clone(&states.borrow_and_update());
        let event = Bytes::from(format!("data: {}\n\n", state.json()));
        let rest = state.ending.is_none().then_some(states);
        Some((Ok::<_, Infallible>(Frame::data(event)), rest))
    });
    answer_of(StatusCode::OK, "text/event-stream", BodyExt::boxed(StreamBody::new(events)))
}

fn text(content_type: &'static str, text: String) -> Answer {
    answer_of(StatusCode::OK, content_type, Full::new(Bytes::from(text)).boxed())
}

fn plain(status: StatusCode, text: &str) -> Answer {
    answer_of(status, "text/plain; charset=utf-8", Full::new(Bytes::from(text.to_owned())).boxed())
}

fn answer_of(status: StatusCode, content_type: &'static str, body: Body) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("content-security-policy"), POLICY),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_times_above_zero() {
        assert_eq!(step(None), Ok(STEP));
        assert_eq!(step(Some("time=250%20ns")), Ok(SimTime(250_000)));
        assert_eq!(step(Some("time=250+n%73")), Ok(SimTime(250_000)));
        assert_eq!(step(Some("token=1&time=2us")), Ok(SimTime(2_000_000)));
        for wrong in ["time=0ns", "time=much", "time="] {
            assert!(step(Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        for text in [PAGE, STYLE, SCRIPT] {
            for outside in ["http://", "https://", "//cdn", "@import", "url("] {
                let found = text.replace("http://www.w3.org/2000/svg", "").contains(outside);
                assert!(!found, "{outside}");
            }
        }
    }
}
