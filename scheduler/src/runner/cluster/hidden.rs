//! The values of the secrets that a job was given, hidden in whatever the cluster says of it: logs
//! of containers without a wrapper, words of Pods and events. What a report says is masked where
//! the driver takes it. Called by the job's task.
//!
//! What always holds: the values are on disk only sealed.

use std::sync::Arc;

use schema::mask::{self, Masker, Secrets};

use crate::runner::evidence::{Decides, OutcomeEvidence};
use crate::secrets::{SealError, Sealer};

/// What the sealed values are bound to.
const PURPOSE: &str = "secrets of a job on a cluster";

/// Finds secrets. Cloned freely.
#[derive(Clone, Default)]
pub(super) struct SecretFinder(Option<Arc<Secrets>>);

impl std::fmt::Debug for SecretFinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden")
    }
}

impl SecretFinder {
    /// These values. Long ones are prepared for some tenths of a second, in which nobody else may
    /// wait.
    pub(super) async fn of(values: Vec<String>) -> Self {
        let prepare = move || Secrets::of(&values.iter().map(String::as_bytes).collect::<Vec<_>>());
        Self(
            tokio::task::spawn_blocking(prepare)
                .await
                .expect("preparing to mask does not panic")
                .map(Arc::new),
        )
    }

    /// Values as they are kept on disk; empty when there are none.
    pub(super) fn sealed(values: &[String], sealer: &Sealer) -> String {
        let text = serde_json::to_string(values).expect("texts are JSON");
        if values.is_empty() { String::new() } else { sealer.seal(PURPOSE, text.as_bytes()) }
    }

    /// Those that were kept.
    ///
    /// # Errors
    /// When they were sealed with another key.
    pub(super) async fn unsealed(sealed: &str, sealer: &Sealer) -> Result<Self, SealError> {
        if sealed.is_empty() {
            return Ok(Self::default());
        }
        let values: Vec<String> =
            serde_json::from_slice(&sealer.unseal(PURPOSE, sealed)?).unwrap_or_default();
        Ok(Self::of(values).await)
    }

    /// The text without them.
    pub(super) fn hide(&self, text: &str) -> String {
        mask::hide(self.0.as_deref(), text).into_owned()
    }

    /// The head of a text without them; without its last bytes too, when it is not whole and they
    /// may begin one.
    pub(super) fn hide_head(&self, head: Vec<u8>, is_whole: bool) -> Vec<u8> {
        match &self.0 {
            Some(secrets) => Masker::default().push(secrets, &head, is_whole),
            None => head,
        }
    }

    /// Hides them in what is told of a job's end.
    pub(super) fn hide_in(&self, learned: &mut OutcomeEvidence) {
        let why = learned.never.as_mut().map(|never| &mut never.why);
        let said = match &mut learned.decides {
            Some(Decides::Job(Some(said))) => Some(&mut said.why),
            _ => None,
        };
        let taken = learned.taken.as_mut().map(|taken| &mut taken.why);
        for text in why.into_iter().chain(learned.lost.as_mut()).chain(taken).chain(said) {
            *text = self.hide(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_hidden_is_what_a_wrapper_hides() {
        let secret = "pa'ss w$rd/+&=:@!(x)*~;,?";
        let hidden = SecretFinder::of(vec![secret.to_owned(), "short".to_owned()]).await;
        for form in [
            r#"pa'"'"'ss w$rd/+&=:@!(x)*~;,?"#,
            "pa%27ss%20w$rd%2F+&=:@%21%28x%29%2A~%3B%2C%3F",
            "pa&#39;ss w$rd/+&amp;=:@!(x)*~;,?",
            "706127737320772472642f2b263d3a40212878292a7e3b2c3f",
        ] {
            assert_eq!(hidden.hide(&format!("short <{form}>")), "short <***>");
        }
    }

    #[tokio::test]
    async fn a_head_ends_before_what_may_begin_a_secret() {
        let hidden = SecretFinder::of(vec!["hunter22".to_owned()]).await;
        assert_eq!(hidden.hide_head(b"hunter22 hunt".to_vec(), false), b"*** ");
        assert_eq!(hidden.hide_head(b"hunter22 hunt".to_vec(), true), b"*** hunt");
    }

    #[tokio::test]
    async fn what_is_kept_is_sealed_and_comes_back() {
        let sealer = Sealer::with_key([7; 32]);
        let sealed = SecretFinder::sealed(&["hunter22".to_owned()], &sealer);
        assert!(!sealed.contains("hunter22"));
        assert_eq!(
            SecretFinder::unsealed(&sealed, &sealer).await.unwrap().hide("x hunter22"),
            "x ***"
        );
        assert!(SecretFinder::unsealed(&sealed, &Sealer::with_key([8; 32])).await.is_err());
        assert_eq!(
            SecretFinder::unsealed(&SecretFinder::sealed(&[], &sealer), &sealer)
                .await
                .unwrap()
                .hide("x"),
            "x"
        );
    }
    #[tokio::test]
    async fn nobody_waits_while_a_long_secret_is_prepared() {
        let mut others = 0;
        let hidden = tokio::select! {
            biased;
            hidden = SecretFinder::of(vec!["A".repeat(100_000)]) => hidden,
            () = async {
                loop {
                    others += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await
                }
            } => unreachable!(),
        };
        assert_eq!(hidden.hide(&"A".repeat(100_000)), "***");
        assert!(others > 1, "{others} turns of the others");
    }
}
