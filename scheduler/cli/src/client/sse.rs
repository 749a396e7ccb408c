//! Reads server-sent events out of bytes. Source: WHATWG HTML, "Server-sent events", event stream
//! interpretation.

use std::collections::VecDeque;

use futures::StreamExt;
use futures::stream::BoxStream;

use crate::failure::Failure;

/// Longest event: a log piece of 64 KiB in base64 and some words around it, with room to spare.
const EVENT_LIMIT_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Its type; `message` when the server gave none.
    pub kind: String,
    /// Its data, lines joined by line ends.
    pub data: String,
    /// The last id given so far, for going on after a break.
    pub id: Option<String>,
}

/// Turns lines into events.
#[derive(Debug, Default)]
struct SseParser {
    rest: Vec<u8>,
    kind: String,
    data: Vec<String>,
    id: Option<String>,
}

impl SseParser {
    /// Takes bytes, in pieces of any size, and gives the events that they complete.
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, Failure> {
        let mut events = Vec::new();
        self.rest.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(end) = self.rest[start..].iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&self.rest[start..start + end])
                .trim_end_matches('\r')
                .to_owned();
            start += end + 1;
            events.extend(self.line(&line));
        }
        self.rest.drain(..start);
        let held = self.rest.len() + self.data.iter().map(String::len).sum::<usize>();
        if held > EVENT_LIMIT_BYTES {
            return Err(Failure::user(format!(
                "the server sent an event of more than {EVENT_LIMIT_BYTES} bytes"
            )));
        }
        Ok(events)
    }

    fn line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then(|| SseEvent {
                kind: if kind.is_empty() { "message".to_owned() } else { kind },
                data: data.join("\n"),
                id: self.id.clone(),
            });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.kind),
            "data" => self.data.push(value.to_owned()),
            "id" => self.id = Some(value.to_owned()),
            // A comment (the server's sign of life), or a field of a later standard.
            _ => {}
        }
        None
    }
}

/// Events as they arrive.
pub struct Events {
    bytes: BoxStream<'static, Result<Vec<u8>, Failure>>,
    parser: SseParser,
    ready: VecDeque<SseEvent>,
}

impl Events {
    pub(super) fn new(bytes: BoxStream<'static, Result<Vec<u8>, Failure>>) -> Self {
        Self { bytes, parser: SseParser::default(), ready: VecDeque::new() }
    }

    /// The next event; `None` when the server ended the stream.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] when the connection breaks.
    pub async fn next(&mut self) -> Result<Option<SseEvent>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.bytes.next().await {
                Some(piece) => self.ready.extend(self.parser.feed(&piece?)?),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str, Option<&str>)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(kind, data, id)| SseEvent {
                kind: kind.to_string(),
                data: data.to_string(),
                id: id.map(str::to_owned),
            })
            .collect();
        assert_eq!(SseParser::default().feed(text.as_bytes()).unwrap(), expected);
        let mut parser = SseParser::default();
        let one_by_one: Vec<_> =
            text.as_bytes().iter().flat_map(|byte| parser.feed(&[*byte]).unwrap()).collect();
        assert_eq!(one_by_one, expected, "in pieces of one byte");
    }

    #[test]
    fn events_are_read_whatever_the_pieces() {
        check("data: a\n\n", &[("message", "a", None)]);
        check(
            "event: chunk\r\nid: 7\r\ndata: a\r\ndata: b\r\n\r\n: still here\n\ndata:c\n\n",
            &[("chunk", "a\nb", Some("7")), ("message", "c", Some("7"))],
        );
        check("event: x\n\ndata: unfinished\n", &[]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut parser = SseParser::default();
        let piece = [b'x'; 1 << 16];
        assert!((0..100).any(|_| parser.feed(&piece).is_err()));
    }
}
