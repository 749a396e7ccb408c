//! What `pvnctl init` can write: for each kind the files in `scheduler/cli/init`.

use clap::ValueEnum;

/// A path in the new directory, and what is written there; `@name@` stands for the name.
type InitFile = (&'static str, &'static str);

macro_rules! files {
    ($kind:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../init/", $kind, "/", $path)))),*]
    };
}

/// What it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InitKind {
    /// Three shell scripts.
    Script,
    /// Migrations of a SQL database.
    Sql,
    /// Terraform or OpenTofu.
    Terraform,
    /// A Helm chart.
    Helm,
    /// Files on this or another host.
    Rsync,
    /// A unit of systemd.
    Systemd,
}

impl InitKind {
    /// All of them, in the order in which people are asked.
    pub const ALL: [Self; 6] =
        [Self::Script, Self::Sql, Self::Terraform, Self::Helm, Self::Rsync, Self::Systemd];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Sql => "sql",
            Self::Terraform => "terraform",
            Self::Helm => "helm",
            Self::Rsync => "rsync",
            Self::Systemd => "systemd",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Script => "three scripts of your own; keeps one file as it should be",
            Self::Sql => "migrations of a database: SQLite, or PostgreSQL by psql",
            Self::Terraform => "Terraform or OpenTofu, the plan shown and exactly it applied",
            Self::Helm => "a Helm chart, compared with what is in the cluster",
            Self::Rsync => "files kept the same, here or on another host",
            Self::Systemd => "a unit of systemd of your own user",
        }
    }

    /// Programs that are not on every machine.
    pub(super) fn needs(self) -> Option<&'static str> {
        match self {
            Self::Script => None,
            Self::Sql => Some("sqlite3, or psql for PostgreSQL"),
            Self::Terraform => Some("terraform or tofu"),
            Self::Helm => Some("helm, kubectl and a cluster"),
            Self::Rsync => Some("rsync"),
            Self::Systemd => Some("systemd with a manager for your user"),
        }
    }

    /// The config but for the application.
    pub(super) fn runtime(self) -> &'static str {
        let [(_, text)] = match self {
            Self::Script => files!("script": "runtime.pvn.yaml"),
            Self::Sql => files!("sql": "runtime.pvn.yaml"),
            Self::Terraform => files!("terraform": "runtime.pvn.yaml"),
            Self::Helm => files!("helm": "runtime.pvn.yaml"),
            Self::Rsync => files!("rsync": "runtime.pvn.yaml"),
            Self::Systemd => files!("systemd": "runtime.pvn.yaml"),
        };
        text
    }

    /// All else.
    pub(super) fn files(self) -> &'static [InitFile] {
        match self {
            Self::Script => files!("script": "fetch.sh", "apply.sh", "info.sh", "target.sh"),
            Self::Sql => files!(
                "sql": "fetch.sh", "apply.sh", "database.sh", "migrations/001-orders.sql",
                "migrations/002-customers.sql",
            ),
            Self::Terraform => files!("terraform": "fetch.sh", "apply.sh", "tool.sh", "main.tf"),
            Self::Helm => files!(
                "helm": "fetch.sh", "apply.sh", "release.sh", "chart/Chart.yaml",
                "chart/values.yaml", "chart/templates/message.yaml",
            ),
            Self::Rsync => files!("rsync": "sync.sh", "site/index.html"),
            Self::Systemd => files!("systemd": "fetch.sh", "apply.sh", "info.sh", "unit.sh"),
        }
    }
}
