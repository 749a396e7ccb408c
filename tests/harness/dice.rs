//! Chance from a seed: the same seed gives the same faults and the same poison, so that what was
//! seen once can be seen again.

/// A source of chance. Not for secrets.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that fall as this seed says.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The number that they show next. Source: SplitMix64, <https://prng.di.unimi.it/splitmix64.c>.
    pub fn fall(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is at least 1.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.fall() % limit as u64).expect("it is below a usize")
    }

    /// Whether it happens, of a hundred times this often.
    pub fn percent(&mut self, often: usize) -> bool {
        self.below(100) < often
    }

    /// One of these, of which there is at least one.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A whole number from the environment, for longer runs: `PVN_FUZZ_BATCHES=500`.
///
/// # Panics
/// When the variable is there and holds something else.
pub fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} is `{text}` and must be a whole number")),
        Err(_) => default,
    }
}
