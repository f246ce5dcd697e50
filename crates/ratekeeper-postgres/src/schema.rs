//! What must be in the database: a schema with a table and the functions.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use ratekeeper::store::StoreError;
use tokio_postgres::Client;

use crate::error::{deadline_passed, statement_error};

/// The database schema that holds a store's table and functions: `ratekeeper`, unless told otherwise.
///
/// Everything in it carries a version in its name, so that a program with another version of this crate finds what it
/// needs next to it: installing leaves alone what an earlier one has installed.
///
/// ```
/// use ratekeeper_postgres::{Schema, Table};
///
/// // For a migration:
/// let sql = Schema::default().sql(Table::Unlogged);
/// assert!(sql.contains(r#"CREATE UNLOGGED TABLE IF NOT EXISTS "ratekeeper".states_v1"#));
/// assert!(Schema::new("limits").is_ok() && Schema::new("Limits; --").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schema {
    name: String,
}

/// Whether the table survives a crash of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Table {
    /// After a crash, and on a replica that takes over, the table is empty: all keys are as never seen, so each may have one
    /// burst (or window) too many. A clean restart loses nothing. Writes no log, which makes decisions cheaper for the
    /// server and its replicas.
    #[default]
    Unlogged,
    /// An ordinary table: written to the log, replicated, and after a crash as `synchronous_commit` says.
    Logged,
}

impl Schema {
    /// The longest name, in bytes.
    pub const MAX_NAME_BYTES: usize = 63;

    /// The schema of this name: 1 to 63 characters of `a–z 0–9 _`, not beginning with a digit or `pg_`.
    ///
    /// # Errors
    /// [`InvalidSchema`] for any other name.
    pub fn new(name: &str) -> Result<Self, InvalidSchema> {
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins_well = name.starts_with(|first: char| !first.is_ascii_digit());
        let ours = begins_well && !name.starts_with("pg_") && name.len() <= Self::MAX_NAME_BYTES;
        if !ours || !name.bytes().all(legal) {
            return Err(InvalidSchema);
        }
        Ok(Self {
            name: name.to_owned(),
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All that must be executed once per database, and may be executed again: creates what is missing. A table that is
    /// there keeps its kind.
    ///
    /// Several statements, for one transaction. Whoever executes them owns the table; others need `USAGE` on the schema
    /// and `SELECT, INSERT, UPDATE, DELETE` on `states_v1`.
    pub fn sql(&self, table: Table) -> String {
        const TABLE: &str = include_str!("sql/table.sql");
        let unlogged = match table {
            Table::Unlogged => "UNLOGGED ",
            Table::Logged => "",
        };
        let bucket = |step: &str| step.replace("@bucket@", include_str!("sql/bucket.sql"));
        let whole = [
            TABLE.replace("@unlogged@", unlogged),
            include_str!("sql/bytes.sql").to_owned(),
            include_str!("sql/look.sql").to_owned(),
            include_str!("sql/swap.sql").to_owned(),
            include_str!("sql/sweep.sql").to_owned(),
            decide(
                "token_bucket_v2",
                &bucket(include_str!("sql/token_bucket.sql")),
            ),
            decide(
                "all_buckets_v2",
                &bucket(include_str!("sql/all_buckets.sql")),
            ),
            decide("sliding_window_v2", include_str!("sql/sliding_window.sql")),
            decide("fixed_window_v2", include_str!("sql/fixed_window.sql")),
        ];
        self.named(&whole.join("\n"))
    }

    /// The function of an algorithm of your own, for [`Call::new`](crate::Call::new); `step` is a block in PL/pgSQL that
    /// moves its state.
    ///
    /// ```text
    /// DECLARE … BEGIN … END;
    /// ```
    ///
    /// In it are given: `now_ns numeric`, the instant; `old bytea`, the value found, NULL for a key never seen; `args numeric[]`,
    /// the call's. It sets `new bytea`, the value to be stored, and `keep_ns numeric`, for how long; or leaves `new` NULL if
    /// nothing is to be written. For an `old` that is none of its values it raises an error with the code `RK001`. It may read
    /// nothing else, and must do as [`step_stored`](ratekeeper::store::step_stored) does with the algorithm, to the last bit.
    ///
    /// The function stands next to one that an earlier version of this crate made under the same name: their arguments differ.
    ///
    /// # Errors
    /// [`InvalidSchema`] unless `name` is made like a schema's.
    pub fn function_sql(&self, name: &str, step: &str) -> Result<String, InvalidSchema> {
        Self::new(name)?;
        Ok(self.named(&decide(name, step)))
    }

    /// Executes [`sql`](Self::sql) over a connection that is not inside of a transaction.
    ///
    /// # Errors
    /// As any statement; [`Config`](ratekeeper::store::ErrorKind::Config) if the role may not create a schema, or is not the
    /// owner of what is there.
    pub async fn install(&self, client: &Client, table: Table) -> Result<(), StoreError> {
        const LIMIT: Duration = Duration::from_secs(30);
        // Sent as one string, all of it is one transaction, and the setting ends with it.
        let sql = format!(
            "SELECT set_config('statement_timeout', '20s', true);\n{}",
            self.sql(table)
        );
        match tokio::time::timeout(LIMIT, client.batch_execute(&sql)).await {
            Ok(result) => result.map_err(|error| statement_error(error, false)),
            Err(_) => Err(deadline_passed()),
        }
    }

    /// A decision's statement.
    pub(crate) fn decision(&self, function: &str) -> String {
        let function = function.replace('"', "\"\"");
        self.named(&format!(
            "SELECT now_ns, old, new FROM @schema@.\"{function}\"($1, $2, $3, $4)"
        ))
    }

    pub(crate) fn swap(&self) -> String {
        self.named("SELECT now_ns, old, new FROM @schema@.swap_v2($1, $2, $3, $4, $5)")
    }

    pub(crate) fn sweep(&self) -> String {
        self.named("SELECT @schema@.sweep_v1($1)")
    }

    /// Answers with one row, as everything here does.
    pub(crate) fn forget(&self) -> String {
        self.named(
            "WITH forgotten AS (DELETE FROM @schema@.states_v1 WHERE key = $1 RETURNING 1) \
             SELECT count(*) FROM forgotten",
        )
    }

    /// Puts the name in, quoted.
    fn named(&self, sql: &str) -> String {
        sql.replace("@schema@", &format!("\"{}\"", self.name))
    }
}

fn decide(name: &str, step: &str) -> String {
    include_str!("sql/decide.sql")
        .replace("@name@", name)
        .replace("@step@", step)
}

impl Default for Schema {
    fn default() -> Self {
        Self {
            name: "ratekeeper".to_owned(),
        }
    }
}

/// A name that cannot be a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSchema;

impl fmt::Display for InvalidSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a schema has 1 to 63 characters of a-z, 0-9 and '_', and does not begin with a digit or 'pg_'",
        )
    }
}

impl Error for InvalidSchema {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let long = "n".repeat(64);
        for name in [
            "", "1a", "pg_x", "A", "a\"b", "a b", "a;", "é", "a.b", "\0", &long,
        ] {
            assert_eq!(Schema::new(name), Err(InvalidSchema), "{name:?}");
        }
        for name in ["ratekeeper", "user", "_1", &long[1..]] {
            assert_eq!(
                Schema::new(name).map(|schema| schema.name).as_deref(),
                Ok(name)
            );
        }
    }

    #[test]
    fn no_placeholder_is_left() {
        let schema = Schema::new("limits").unwrap();
        for table in [Table::Unlogged, Table::Logged] {
            assert!(!schema.sql(table).contains('@'));
        }
        assert_ne!(schema.sql(Table::Unlogged), schema.sql(Table::Logged));
        assert_eq!(
            schema.function_sql("x; DROP", "BEGIN END;"),
            Err(InvalidSchema)
        );
    }
}
