//! The log as it grows, from where a run of `dev` begins. A stream that breaks is opened again
//! where it was: this process, or its machine, may stand still for longer than a client waits for a
//! sign of life. Called by `session`.

use std::time::Duration;

use pvnctl::client::{Client, Events, SseEvent};
use pvnctl::failure::Failure;
use schema::api::LogEntry;

const PATH: &[&str] = &["v1", "events"];

/// How long it takes to another try where it cannot be opened.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(super) struct DevEvents {
    client: Client,
    /// None where it is over.
    stream: Option<Events>,
    last: Option<String>,
}

impl DevEvents {
    pub(super) async fn open(client: &Client) -> Result<Self, Failure> {
        let stream = client.events(PATH, &[], None).await?;
        let last = newest_event(client).await?.map(|seq| seq.to_string());
        Ok(Self { client: client.clone(), stream: Some(stream), last })
    }

    /// The number of the last one that came; 0 before the first of all.
    pub(super) fn last(&self) -> u64 {
        self.last.as_ref().and_then(|id| id.parse().ok()).unwrap_or(0)
    }

    /// The next one; `None` where the stream is over, and is to be opened again. Safe to drop and
    /// call again.
    pub(super) async fn next(&mut self) -> Result<Option<SseEvent>, Failure> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        match stream.next().await {
            Ok(Some(event)) => {
                self.last.clone_from(&event.id);
                Ok(Some(event))
            }
            Ok(None) => {
                self.stream = None;
                Ok(None)
            }
            Err(failure) if failure.passes(true) => {
                self.stream = None;
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Opens it again where it was. Where that fails for now it stays over, until another try.
    pub(super) async fn open_again(&mut self) -> Result<(), Failure> {
        match self.client.events(PATH, &[], self.last.as_deref()).await {
            Ok(stream) => self.stream = Some(stream),
            Err(failure) if failure.passes(true) => tokio::time::sleep(AGAIN_AFTER).await,
            Err(failure) => return Err(failure),
        }
        Ok(())
    }
}

/// The number of the newest entry of the log.
pub(super) async fn newest_event(client: &Client) -> Result<Option<u64>, Failure> {
    Ok(client.list::<LogEntry>(PATH, &[], Some(1)).await?.items.first().map(|entry| entry.seq))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers the next request with these bytes, closes the connection, and returns what was
    /// asked.
    async fn answer(listener: &TcpListener, bytes: &str) -> String {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            connection.read_buf(&mut asked).await.unwrap();
        }
        connection.write_all(bytes.as_bytes()).await.unwrap();
        String::from_utf8(asked).unwrap().to_lowercase()
    }

    /// A stream of which more is to come than comes.
    fn stream(event: &str) -> String {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n\
             {event}"
        )
    }

    #[tokio::test]
    async fn a_stream_that_breaks_is_opened_again_where_it_was() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let serve = tokio::spawn(async move {
            answer(&listener, &stream("")).await;
            let page = "{\"items\":[],\"total\":0}";
            let page = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{page}",
                page.len()
            );
            answer(&listener, &page).await;
            answer(&listener, &stream("id: 7\ndata: a\n\n")).await;
            answer(&listener, "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await;
            answer(&listener, &stream("id: 8\ndata: b\n\n")).await
        });
        let client = Client::new(&server, None, None).unwrap();
        let mut events = DevEvents::open(&client).await.unwrap();
        let mut came = Vec::new();
        while came.len() < 2 {
            match events.next().await.unwrap() {
                Some(event) => came.push(event.data),
                None => events.open_again().await.unwrap(),
            }
        }
        assert_eq!((came, events.last()), (vec!["a".to_owned(), "b".to_owned()], 8));
        let asked = serve.await.unwrap();
        assert!(asked.contains("last-event-id: 7"), "{asked}");
    }
}
