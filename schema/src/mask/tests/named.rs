//! Fields that a value names as secret.

use super::check;

#[test]
fn a_secret_field_of_a_json_secret_is_hidden_alone_and_the_others_are_not() {
    let account = r#"{"type": "service_account", "project_id": "acme-prod", "private_key_id": "0123456789abcdef",
        "private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg/x+y==\nAoIBAQC7VJTUt9Us8\n-----END PRIVATE KEY-----\n"}"#;
    check(
        &[account],
        "acme-prod 0123456789abcdef service_account",
        "acme-prod 0123456789abcdef service_account",
    );
    check(&[account], "key:\nMIIEvQIBADANBg/x+y==\nAoIBAQC7VJTUt9Us8\n", "key:\n***\n***\n");
    check(&[account], "\\nAoIBAQC7VJTUt9Us8 MIIEvQIBADANBg%2Fx%2By%3D%3D", "\\n*** ***");
    let nested = r#"{"Credentials":{"AccessKeyId":"ASIAEXAMPLE","SecretAccessKey":"abcdEFGH1234","users":[{"name":"ops","dbPassword":"correct horse"}]}}"#;
    check(&[nested], "ASIAEXAMPLE abcdEFGH1234 ops: correct+horse", "ASIAEXAMPLE *** ops: ***");
}

#[test]
fn a_secret_line_of_settings_is_hidden_alone() {
    let env = "export DB_HOST=db.internal\nexport DB_PASSWORD='hunter2hunter2'\n";
    check(&[env], "db.internal hunter2hunter2", "db.internal ***");
    let ini = "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = \
               wJalrXUtnFEMI/K7MDENG\n";
    check(&[ini], "AKIAEXAMPLE wJalrXUtnFEMI/K7MDENG", "AKIAEXAMPLE ***");
    let yaml = "users:\n- name: ops\n  user:\n    token: \"sha256~abcdefgh\"\n";
    check(&[yaml], "ops sha256~abcdefgh", "ops ***");
}

#[test]
fn what_only_names_something_and_short_words_are_shown() {
    let pairs = r#"{"tags": [{"key": "eu-west-1-region", "value": "x"}], "token": "default", "sortKey": null, "secret": 12345678}"#;
    check(&[pairs], "eu-west-1-region default 12345678", "eu-west-1-region default 12345678");
}
