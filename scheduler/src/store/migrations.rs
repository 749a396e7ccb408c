//! The steps that bring a database to what this program needs, in order. Written out, because the
//! macro that finds them would have whoever builds this compile SQLite twice.

use std::borrow::Cow;
use std::sync::LazyLock;

use sqlx::SqlStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// A file in `migrations/`, by its number and its name.
macro_rules! steps {
    ($(($number:literal, $name:literal)),* $(,)?) => {
        &[$((
            $number,
            include_str!(concat!("../../migrations/", $number, "_", $name, ".sql")),
            $name,
        )),*]
    };
}

/// All of them; one that was shipped never changes.
const STEPS: &[(&str, &str, &str)] = steps![
    ("0001", "init"),
    ("0002", "owner"),
    ("0003", "secret_versions"),
    ("0004", "retention"),
    ("0005", "lists"),
    ("0006", "refused"),
    ("0007", "refused_before"),
    ("0008", "applied"),
    ("0009", "target"),
    ("0010", "token_limits"),
    ("0011", "notifications"),
    ("0012", "deleted"),
    ("0013", "observed"),
];

pub(super) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let step = |(number, sql, name): &(&str, &'static str, &str)| {
        let number = number.parse().expect("the numbers of migrations are digits");
        Migration::new(
            number,
            Cow::Owned(name.replace('_', " ")),
            MigrationType::Simple,
            SqlStr::from_static(sql),
            false,
        )
    };
    Migrator::with_migrations(STEPS.iter().map(step).collect())
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_step() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
        let mut files: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let steps: Vec<_> =
            STEPS.iter().map(|(number, _, name)| format!("{number}_{name}.sql")).collect();
        assert_eq!(files, steps);
    }
}
