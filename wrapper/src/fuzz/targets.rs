//! What is fuzzed, and what must hold for any bytes: no panic, and the rule of each. Called by
//! `fuzz` in every run of the tests, and by `wrapper/fuzz`, which gives the same functions to
//! libFuzzer.

use schema::mask::{Masker, Secrets};
use schema::report::{Report, StructuredKind};
use schema::spool::order_pieces;

use crate::args::{DeclaredInput, DeclaredOutput};

/// A secret, a line end, how large reads are, and the text: wherever it is cut, the same is shown,
/// and never the secret.
pub(crate) fn mask(case: &[u8]) {
    let mut parts = case.splitn(2, |byte| *byte == b'\n');
    let (secret, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let [step, text @ ..] = rest else { return };
    let Some(secrets) = Secrets::of(&[secret]) else { return };
    for new in [Masker::default, Masker::of_document] {
        let whole = new().push(&secrets, text, true);
        let mut masker = new();
        let mut shown: Vec<u8> = text
            .chunks(usize::from(*step).max(1))
            .flat_map(|piece| masker.push(&secrets, piece, false))
            .collect();
        shown.extend(masker.push(&secrets, b"", true));
        assert_eq!(shown, whole);
        if !secret.contains(&b'*') {
            assert!(!whole.windows(secret.len()).any(|window| window == secret));
        }
    }
}

/// A document is taken or refused with a reason; what is taken is taken again.
pub(crate) fn structured(case: &[u8]) {
    for kind in [StructuredKind::Fetch, StructuredKind::GetInfo] {
        match schema::check::check(case, kind) {
            Ok(value) => assert_eq!(
                schema::check::check(value.to_string().as_bytes(), kind).as_ref(),
                Ok(&value)
            ),
            Err(errors) => assert!(!errors.is_empty()),
        }
    }
}

/// `--in` and `--out`: what is taken can be written again, and names what it may name.
pub(crate) fn arguments(case: &[u8]) {
    let text = String::from_utf8_lossy(case);
    if let Ok(input) = DeclaredInput::parse(&text) {
        assert_eq!(format!("{}={}", input.path.display(), input.reference), text);
        assert!(!input.reference.contains('/'), "a reference is a file name");
    }
    if let Ok(output) = DeclaredOutput::parse(&text) {
        assert_eq!(format!("{}={}", output.name, output.path.display()), text);
        assert!(
            !output.name.contains('/') && !output.name.starts_with('.'),
            "a name is a file name"
        );
    }
}

/// What a killed wrapper left: an order of pieces and a report.
pub(crate) fn spool(case: &[u8]) {
    assert!(order_pieces(case).count() <= case.len());
    if let Ok(report) = serde_json::from_slice::<Report>(case) {
        let text = serde_json::to_vec(&report).unwrap();
        assert_eq!(serde_json::from_slice::<Report>(&text).unwrap(), report);
    }
}
