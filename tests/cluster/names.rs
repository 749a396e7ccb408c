//! As much of DNS as it takes to tell the address of one name. Format: RFC 1035, section 4.

use std::net::Ipv4Addr;

use tokio::net::UdpSocket;

/// Longest question over UDP without extensions.
const QUESTION_LIMIT_BYTES: usize = 512;
/// Fixed length of a message's head.
const HEAD_BYTES: usize = 12;
/// How long an answer may be remembered, seconds: not at all.
const TTL_SECONDS: u32 = 0;

/// Kinds and classes of records.
const A: u16 = 1;
const INTERNET: u16 = 1;

/// Answers for as long as it is polled: `name` has this address, everybody else does not exist.
pub(super) async fn answer(socket: UdpSocket, name: String, address: Ipv4Addr) {
    let mut question = [0; QUESTION_LIMIT_BYTES];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut question).await else { continue };
        if let Some(reply) = reply(&question[..length], &name, address) {
            // Who asked asks again.
            let _lost = socket.send_to(&reply, from).await;
        }
    }
}

/// The answer to a question; `None` when it is none.
fn reply(question: &[u8], name: &str, address: Ipv4Addr) -> Option<Vec<u8>> {
    let head = question.get(..HEAD_BYTES)?;
    let mut at = HEAD_BYTES;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*question.get(at)?);
        let label = question.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(label).to_lowercase());
    }
    let kind = question.get(at..at + 2)?;
    at += 4;
    let asked = question.get(HEAD_BYTES..at)?;
    let is_known = labels.join(".") == name;
    let is_answered = is_known && kind == A.to_be_bytes();
    // An authoritative answer, recursion as it was desired; "no such name" where it is not known.
    let mut reply = [&head[..2], &[0x84 | (head[2] & 1), if is_known { 0 } else { 3 }]].concat();
    for count in [1, u16::from(is_answered), 0, 0] {
        reply.extend(count.to_be_bytes());
    }
    reply.extend(asked);
    if is_answered {
        // The name is the one that stands behind the head.
        reply.extend([0xc0, 0x0c]);
        for field in [A, INTERNET] {
            reply.extend(field.to_be_bytes());
        }
        reply.extend(TTL_SECONDS.to_be_bytes());
        reply.extend(4_u16.to_be_bytes());
        reply.extend(address.octets());
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AAAA: u16 = 28;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut question = vec![7, 8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            question.push(u8::try_from(label.len()).unwrap());
            question.extend(label.bytes());
        }
        question.push(0);
        question.extend([kind.to_be_bytes(), INTERNET.to_be_bytes()].concat());
        question
    }

    /// Result code, answers, and the message's last four bytes.
    fn check(name: &str, kind: u16, expected: (u8, u8, Option<[u8; 4]>)) {
        let asked = question(name, kind);
        let told = reply(&asked, "web.ns.svc.cluster.local", Ipv4Addr::new(10, 217, 0, 9)).unwrap();
        assert_eq!((&told[..2], told[2]), (&asked[..2], 0x85));
        let address =
            (told.len() > asked.len()).then(|| told[told.len() - 4..].try_into().unwrap());
        assert_eq!((told[3], told[7], address), expected, "{name} {kind}");
    }

    #[test]
    fn one_name_has_an_address_and_no_other_exists() {
        check("web.ns.svc.cluster.local", A, (0, 1, Some([10, 217, 0, 9])));
        check("Web.NS.svc.cluster.local", A, (0, 1, Some([10, 217, 0, 9])));
        check("web.ns.svc.cluster.local", AAAA, (0, 0, None));
        check("web.ns.svc", A, (3, 0, None));
    }

    #[test]
    fn half_a_question_has_no_answer() {
        let whole = question("web.ns.svc.cluster.local", A);
        for length in 0..whole.len() {
            assert_eq!(
                reply(&whole[..length], "web.ns.svc.cluster.local", Ipv4Addr::LOCALHOST),
                None,
                "{length}"
            );
        }
    }
}
