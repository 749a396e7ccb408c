//! By which variables the client of a cloud finds what stands in for it, and nothing that this
//! machine or its owner has. Used by all that start a client: tests of the wrapper and of the
//! whole, images, and the program of this crate. Who asks (a key, a token, a configuration) is
//! each one's own.

/// For `aws`, where a server listens at `url`.
pub fn of_ecs(url: &str) -> [(&'static str, &str); 4] {
    [
        ("AWS_ENDPOINT_URL", url),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ]
}

/// For `gcloud run`, which puts the region before the host of an address that it is given, so that
/// it reaches a server at `port` of this machine as its proxy.
pub fn of_cloud_run(port: &str) -> [(&'static str, &str); 4] {
    [
        ("CLOUDSDK_API_ENDPOINT_OVERRIDES_RUN", "http://run.test/"),
        ("CLOUDSDK_PROXY_TYPE", "http_no_tunnel"),
        ("CLOUDSDK_PROXY_ADDRESS", "127.0.0.1"),
        ("CLOUDSDK_PROXY_PORT", port),
    ]
}
