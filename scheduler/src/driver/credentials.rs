//! Secrets and tokens, for whoever sets, makes and ends them. Called by `http`; the planner does
//! it.

use schema::api::{NewToken, TokenRequest};

use super::planner::Request;
use super::{Caller, Handle, Refusal};

impl Handle {
    /// Stores a secret's next version and returns its number.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], [`Refusal::Unavailable`].
    pub async fn set_secret(
        &self,
        key: String,
        value: Vec<u8>,
        caller: Caller,
    ) -> Result<u64, Refusal> {
        self.plan(|reply| Request::SetSecret { key, value, if_changed: false, caller, reply }).await
    }

    /// The same unless the latest version has this value already, whose number it returns then.
    ///
    /// # Errors
    /// [`Refusal::Invalid`], [`Refusal::Unavailable`].
    pub async fn set_secret_if_changed(
        &self,
        key: String,
        value: Vec<u8>,
        caller: Caller,
    ) -> Result<u64, Refusal> {
        self.plan(|reply| Request::SetSecret { key, value, if_changed: true, caller, reply }).await
    }

    /// Removes all versions of a secret.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`] when a service in force names it.
    pub async fn delete_secret(&self, key: String, caller: Caller) -> Result<(), Refusal> {
        self.plan(|reply| Request::DeleteSecret { key, caller, reply }).await
    }

    /// Makes a token; its value is in the answer and nowhere else.
    ///
    /// # Errors
    /// [`Refusal::Conflict`] when the name was ever used, [`Refusal::Invalid`],
    /// [`Refusal::Unavailable`].
    pub async fn create_token(
        &self,
        request: TokenRequest,
        caller: Caller,
    ) -> Result<NewToken, Refusal> {
        self.plan(|reply| Request::CreateToken { request, caller, reply }).await
    }

    /// Ends a token.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`] when it is the last admin token that is valid,
    /// [`Refusal::Unavailable`].
    pub async fn revoke_token(&self, name: String, caller: Caller) -> Result<(), Refusal> {
        self.plan(|reply| Request::RevokeToken { name, caller, reply }).await
    }
}
