//! Somebody who has signed in with a browser that has no script: pages and forms over HTTP.

use reqwest::blocking::{Client, Response};
use reqwest::header;

use crate::http;
use crate::scheduler::Scheduler;

/// Who has signed in.
#[derive(Debug)]
pub struct Person {
    client: Client,
    url: String,
    cookie: String,
}

impl Person {
    /// Signs in with a token.
    ///
    /// # Panics
    /// When that is refused.
    pub fn signed_in(scheduler: &Scheduler, token: &str) -> Self {
        let client = http::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client can be made");
        let mut person = Self { client, url: scheduler.url().to_owned(), cookie: String::new() };
        let answer = person.post("/sign-in", &format!("token={token}"));
        let cookie = answer.headers().get(header::SET_COOKIE).expect("it signs in");
        let cookie = cookie.to_str().expect("a cookie is text");
        cookie.split(';').next().unwrap_or_default().clone_into(&mut person.cookie);
        person
    }

    /// The address of the scheduler.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The header that says who asks.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Sends a form, as its own page has a browser do; the answer leads on.
    ///
    /// # Panics
    /// When it does not.
    pub fn post(&self, path: &str, form: &str) -> Response {
        let request = self.client.post(format!("{}{path}", self.url));
        let answer = request
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .header(header::COOKIE, &self.cookie)
            .body(form.to_owned())
            .send()
            .expect("the scheduler answers");
        assert!(answer.status().is_redirection(), "{path}: {}", answer.status());
        answer
    }

    /// The HTML of a page.
    ///
    /// # Panics
    /// When there is none.
    pub fn page(&self, path: &str) -> String {
        let request = self.client.get(format!("{}{path}", self.url));
        let request = request.header(header::ACCEPT, "text/html");
        let answer = request.header(header::COOKIE, &self.cookie).send();
        let answer = answer.expect("the scheduler answers");
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        answer.text().expect("a page is text")
    }
}
