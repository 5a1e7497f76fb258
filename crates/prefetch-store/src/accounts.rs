//! Whose launches were learned of a program, and whose launches use each of its files: the table `account`.

use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::record;
use super::spans::{put, take};
use eke_prefetch_model::file_set::UsedBy;
use eke_prefetch_model::program::ProgramId;

/// The most accounts of a program that are kept: the last ones.
pub const MOST_USERS: usize = 16;

/// The row of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Accounts {
    /// The accounts whose launches were learned, the last one last.
    pub users: Vec<u32>,
    /// For each file of the set, in its order.
    pub used_by: Vec<UsedBy>,
}

impl Accounts {
    /// A launch of this account was learned.
    pub fn add(&mut self, account: u32) {
        self.users.retain(|user| *user != account);
        self.users.push(account);
        let over = self.users.len().saturating_sub(MOST_USERS);
        self.users.drain(..over);
    }

    /// The users of file number `at`; a store of an earlier eke does not know.
    pub fn used_by(&self, at: usize) -> UsedBy {
        self.used_by.get(at).copied().unwrap_or_default()
    }
}

/// The accounts of a program's launches. The column of its files, which may be long, is not read.
pub(super) fn users(connection: &Connection, id: ProgramId) -> rusqlite::Result<Vec<u32>> {
    let select = "SELECT users FROM account WHERE program = (SELECT key FROM program WHERE id = ?)";
    let mut select = connection.prepare_cached(select)?;
    let users = select.query_row([record::id_column(id)], users_of).optional()?;
    Ok(users.unwrap_or_default())
}

fn users_of(row: &Row<'_>) -> rusqlite::Result<Vec<u32>> {
    let users = decode(row.get_ref(0)?.as_blob().unwrap_or_default());
    Ok(users.filter_map(|user| user.try_into().ok()).collect())
}

/// The row of a program; empty if there is none.
pub(super) fn of(connection: &Connection, id: ProgramId) -> rusqlite::Result<Accounts> {
    let select = "SELECT users, files FROM account WHERE program = (SELECT key FROM program WHERE id = ?)";
    let row = connection.prepare_cached(select)?.query_row([record::id_column(id)], |row| {
        Ok(Accounts {
            users: users_of(row)?,
            used_by: decode(row.get_ref(1)?.as_blob().unwrap_or_default()).map(used_by).collect(),
        })
    });
    Ok(row.optional()?.unwrap_or_default())
}

/// Replaces the row of the program with this key.
pub(super) fn put_row(
    transaction: &Transaction<'_>,
    program: i64,
    accounts: &Accounts,
) -> rusqlite::Result<()> {
    let (mut users, mut files) = (Vec::new(), Vec::new());
    accounts.users.iter().for_each(|user| put(&mut users, (*user).into()));
    accounts.used_by.iter().for_each(|used_by| put(&mut files, number(*used_by)));
    let insert = "INSERT OR REPLACE INTO account (program, users, files) VALUES (?, ?, ?)";
    transaction.prepare_cached(insert)?.execute((program, users, files)).map(drop)
}

/// The bytes that a file takes in its program's row.
pub(super) fn bytes(used_by: UsedBy) -> usize {
    let mut bytes = Vec::new();
    put(&mut bytes, number(used_by));
    bytes.len()
}

fn decode(mut bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    std::iter::from_fn(move || take(&mut bytes))
}

fn number(used_by: UsedBy) -> u64 {
    match used_by {
        UsedBy::Unknown => 0,
        UsedBy::Several => 1,
        UsedBy::One(account) => u64::from(account) + 2,
    }
}

fn used_by(number: u64) -> UsedBy {
    match number {
        0 => UsedBy::Unknown,
        1 => UsedBy::Several,
        account => u32::try_from(account - 2).map_or(UsedBy::Several, UsedBy::One),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_users() {
        for of in [UsedBy::Unknown, UsedBy::Several, UsedBy::One(0), UsedBy::One(u32::MAX)] {
            assert_eq!(used_by(number(of)), of);
        }
        assert_eq!(used_by(u64::MAX), UsedBy::Several, "damaged");
        assert_eq!([UsedBy::Unknown, UsedBy::One(1000)].map(bytes), [1, 2]);
    }

    #[test]
    fn the_last_users_are_kept() {
        let mut accounts = Accounts::default();
        (0..20).for_each(|user| accounts.add(user));
        accounts.add(10);
        assert_eq!((accounts.users.len(), accounts.users[0], accounts.users[15]), (MOST_USERS, 4, 10));
    }
}
