//! A real Chromium, driven over WebDriver (W3C) by Debian's `chromedriver`: what a person sees and
//! clicks. The protocol is JSON over HTTP, which the client that these tests have speaks.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::{http, port, skip, wait};

/// The member that names an element. Source: WebDriver, "Elements".
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How a page is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// In the name of pictures.
    pub name: &'static str,
    pub width: u32,
    pub height: u32,
    /// `light` or `dark`.
    pub scheme: &'static str,
}

/// The three ways in which every page is looked at.
pub const LOOKS: [Look; 3] = [
    Look { name: "light", width: 1280, height: 800, scheme: "light" },
    Look { name: "dark", width: 1280, height: 800, scheme: "dark" },
    Look { name: "phone", width: 360, height: 780, scheme: "light" },
];

/// One window. Dropping it ends the browser.
pub struct Browser {
    driver: Child,
    url: String,
    session: String,
    client: reqwest::blocking::Client,
    /// What paths are appended to.
    base: String,
}

impl Browser {
    /// A browser that looks at the scheduler of this address; `None` where there is none, which is
    /// told and counted.
    ///
    /// # Panics
    /// When there is one and it does not start.
    pub fn start(test: &str, base: &str) -> Option<Self> {
        for program in ["chromium", "chromedriver"] {
            if skip::tool(program).is_none() {
                skip::skipped(test, &format!("{program} is not installed"));
                return None;
            }
        }
        let port = port::free("127.0.0.1");
        let driver = Command::new("chromedriver")
            .args([format!("--port={port}"), "--log-level=OFF".to_owned()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver can be started");
        let client = http::client();
        let url = format!("http://127.0.0.1:{port}");
        let mut browser =
            Self { driver, url, session: String::new(), client, base: base.to_owned() };
        wait::until("chromedriver to answer", || {
            let answer = browser.client.get(format!("{}/status", browser.url)).send().ok()?;
            answer.status().is_success().then_some(())
        });
        // In a container there are no namespaces for its sandbox, and /dev/shm is small.
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let made = browser.ask("POST", "/session", &wanted).expect("a session begins");
        made["sessionId"].as_str().expect("it has an id").clone_into(&mut browser.session);
        Some(browser)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let method = method.parse().expect("it is a method");
        let request = self.client.request(method, format!("{}{path}", self.url));
        let answer = request.body(body.to_string()).send().expect("chromedriver answers");
        let is_good = answer.status().is_success();
        let text = answer.text().expect("it answers with text");
        let said: Value = serde_json::from_str(&text).expect("it answers with JSON");
        if is_good { Ok(said["value"].clone()) } else { Err(said["value"].clone()) }
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        self.ask(method, &format!("/session/{}{path}", self.session), body)
    }

    fn cdp(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.command("POST", "/goog/cdp/execute", &body)
            .unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Goes to a path of the scheduler.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn open(&self, path: &str) {
        let body = json!({"url": format!("{}{path}", self.base)});
        self.command("POST", "/url", &body).unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// What a script in the page returns.
    ///
    /// # Panics
    /// When it fails.
    pub fn script(&self, script: &str) -> Value {
        self.command("POST", "/execute/sync", &json!({"script": script, "args": []}))
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    fn element(&self, selector: &str) -> Option<String> {
        let body = json!({"using": "css selector", "value": selector});
        let found = self.command("POST", "/element", &body).ok()?;
        found[ELEMENT].as_str().map(str::to_owned)
    }

    /// The text that a person sees of the first element of this selector.
    pub fn text(&self, selector: &str) -> Option<String> {
        let element = self.element(selector)?;
        let text = self.command("GET", &format!("/element/{element}/text"), &json!({})).ok()?;
        text.as_str().map(str::to_owned)
    }

    /// Waits until an element shows this text, and returns all of its text.
    ///
    /// # Panics
    /// When it does not come, with what the page shows.
    pub fn shows(&self, selector: &str, text: &str) -> String {
        let found = wait::within(wait::PATIENCE, || {
            self.text(selector).filter(|shown| shown.contains(text))
        });
        found.unwrap_or_else(|| {
            panic!("`{selector}` does not show {text:?} but {:?}", self.text("body"))
        })
    }

    /// Clicks the first element of this selector, as a person does.
    ///
    /// # Panics
    /// When there is none, or something lies above it.
    pub fn click(&self, selector: &str) {
        let element = self.element(selector).unwrap_or_else(|| {
            panic!("no `{selector}` on {}: {:?}", self.path(), self.text("body"))
        });
        self.command("POST", &format!("/element/{element}/click"), &json!({}))
            .unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Types into the first element of this selector.
    ///
    /// # Panics
    /// When there is none.
    pub fn type_into(&self, selector: &str, text: &str) {
        let element = self.element(selector).unwrap_or_else(|| panic!("no `{selector}`"));
        self.command("POST", &format!("/element/{element}/value"), &json!({"text": text}))
            .unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// The path and query of the page.
    ///
    /// # Panics
    /// When there is none.
    pub fn path(&self) -> String {
        let path = self.script("return location.pathname + location.search");
        path.as_str().expect("a path is text").to_owned()
    }

    /// Looks at pages in this way from now on.
    pub fn look(&self, look: Look) {
        let size = json!({"width": look.width, "height": look.height, "deviceScaleFactor": 1,
            "mobile": look.width < 500});
        self.cdp("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!([{"name": "prefers-color-scheme", "value": look.scheme}]);
        self.cdp("Emulation.setEmulatedMedia", json!({"features": scheme}));
    }

    /// Forgets who has signed in.
    ///
    /// # Panics
    /// When the browser does not.
    pub fn forget_cookies(&self) {
        self.command("DELETE", "/cookie", &json!({})).expect("cookies can be forgotten");
    }

    /// Whether scripts run from the next page on.
    pub fn scripts_run(&self, run: bool) {
        self.cdp("Emulation.setScriptExecutionDisabled", json!({"value": !run}));
    }

    /// Writes a picture of the whole page.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn picture(&self, path: &Path) {
        self.capture(path, true);
    }

    /// Writes a picture of what its window shows.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn picture_of_window(&self, path: &Path) {
        self.capture(path, false);
    }

    fn capture(&self, path: &Path, is_whole: bool) {
        let whole = json!({"captureBeyondViewport": is_whole});
        let taken = self.cdp("Page.captureScreenshot", whole);
        let text = taken["data"].as_str().expect("a picture is base64");
        let mut bytes = Vec::new();
        let (mut held, mut bits) = (0u32, 0);
        // RFC 4648, 4; these tests have no other use for a decoder.
        for letter in text.bytes() {
            let value = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => continue,
            };
            (held, bits) = (held << 6 | u32::from(value), bits + 6);
            if bits >= 8 {
                bits -= 8;
                bytes.push((held >> bits & 0xff) as u8);
            }
        }
        std::fs::write(path, bytes).expect("a picture can be written");
    }

    /// What the browser complained about since the last time: faults of scripts, requests that
    /// failed, what the policy of a page forbade.
    ///
    /// # Panics
    /// When it does not tell.
    pub fn complaints(&self) -> Vec<String> {
        let told = self.command("POST", "/se/log", &json!({"type": "browser"}));
        let told = told.expect("the browser has a log");
        let entries = told.as_array().expect("a log is a list");
        entries.iter().map(|entry| entry["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _gone_already = self.command("DELETE", "", &json!({}));
        let _gone_already = self.driver.kill();
        let _reaped = self.driver.wait();
    }
}
