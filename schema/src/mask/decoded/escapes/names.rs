//! The characters that have a name in markup. Called by `escapes`.

/// Longest name, bytes.
pub(super) const LIMIT_BYTES: usize = 7;

/// Names of characters that follow each other, with the first one's number: those of XML, and of
/// HTML 4 (24) those of Latin-1, of Greek letters and of punctuation, as `htmlentities` of PHP
/// writes them. Without `amp`: so an escape is escaped.
const NAMED: &[(u32, &str)] = &[
    (0x22, "quot"),
    (0x27, "apos"),
    (0x3c, "lt"),
    (0x3e, "gt"),
    (
        0xa0,
        "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg \
         plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 \
         iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml \
         Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave \
         Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil \
         egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde \
         ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml",
    ),
    (0x152, "OElig oelig"),
    (0x160, "Scaron scaron"),
    (0x178, "Yuml"),
    (0x2c6, "circ"),
    (0x2dc, "tilde"),
    (
        0x391,
        "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho",
    ),
    (0x3a3, "Sigma Tau Upsilon Phi Chi Psi Omega"),
    (
        0x3b1,
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho \
         sigmaf sigma tau upsilon phi chi psi omega",
    ),
    (0x2002, "ensp emsp"),
    (0x2009, "thinsp"),
    (0x200c, "zwnj zwj lrm rlm"),
    (0x2013, "ndash mdash"),
    (0x2018, "lsquo rsquo sbquo"),
    (0x201c, "ldquo rdquo bdquo"),
    (0x2020, "dagger Dagger bull"),
    (0x2026, "hellip"),
    (0x2030, "permil"),
    (0x2039, "lsaquo rsaquo"),
    (0x20ac, "euro"),
    (0x2122, "trade"),
];

/// The number of the character of this name.
pub(super) fn number(name: &[u8]) -> Option<u32> {
    all().find(|(_, known)| known.as_bytes() == name).map(|(number, _)| number)
}

/// Whether a name begins so.
pub(super) fn begins(text: &[u8]) -> bool {
    all().any(|(_, known)| known.as_bytes().starts_with(text))
}

fn all() -> impl Iterator<Item = (u32, &'static str)> {
    NAMED.iter().flat_map(|(first, names)| (*first..).zip(names.split(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_numbers() {
        for (name, character) in [
            ("quot", '"'),
            ("apos", '\''),
            ("lt", '<'),
            ("gt", '>'),
            ("nbsp", '\u{a0}'),
            ("szlig", 'ß'),
            ("times", '×'),
            ("yuml", 'ÿ'),
            ("scaron", 'š'),
            ("Omega", 'Ω'),
            ("omega", 'ω'),
            ("rlm", '\u{200f}'),
            ("bdquo", '„'),
            ("hellip", '…'),
            ("rsaquo", '›'),
            ("euro", '€'),
            ("trade", '™'),
        ] {
            assert_eq!(number(name.as_bytes()), Some(u32::from(character)), "{name}");
        }
        assert_eq!((number(b"amp"), number(b""), number(b"uum")), (None, None, None));
        assert!(begins(b"uum") && begins(b"") && !begins(b"uumlx"));
        assert_eq!(all().map(|(_, name)| name.len()).max(), Some(LIMIT_BYTES));
    }
}
