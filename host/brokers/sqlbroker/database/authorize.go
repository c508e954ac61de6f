package database

import (
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// migrationTable is the table of the applied migrations. Plugins may read it but not write it.
const migrationTable = "hako_migration"

// pragmas are the allowed pragmas, which only describe or check the schema.
var pragmas = []string{
	"foreign_key_check", "foreign_key_list", "function_list", "index_info", "index_list",
	"index_xinfo", "integrity_check",
	"quick_check", "table_info", "table_list", "table_xinfo",
}

// writes are the actions that change the named table.
var writes = []sqlite3.AuthorizerActionCode{
	sqlite3.AUTH_CREATE_TABLE, sqlite3.AUTH_DELETE, sqlite3.AUTH_DROP_TABLE, sqlite3.AUTH_INSERT, sqlite3.AUTH_UPDATE,
}

// tableSecond are the actions whose second argument is the table.
var tableSecond = []sqlite3.AuthorizerActionCode{
	sqlite3.AUTH_ALTER_TABLE, sqlite3.AUTH_CREATE_INDEX, sqlite3.AUTH_CREATE_TRIGGER, sqlite3.AUTH_DROP_INDEX,
	sqlite3.AUTH_DROP_TRIGGER,
}

// allowed are the other actions that a statement may contain. ATTACH, DETACH, temporary and virtual tables, savepoints
// and transactions are not allowed; sessions manage transactions.
var allowed = []sqlite3.AuthorizerActionCode{
	sqlite3.AUTH_READ, sqlite3.AUTH_SELECT, sqlite3.AUTH_FUNCTION, sqlite3.AUTH_RECURSIVE,
	sqlite3.AUTH_ANALYZE, sqlite3.AUTH_REINDEX,
	sqlite3.AUTH_CREATE_VIEW, sqlite3.AUTH_DROP_VIEW,
}

// authorize decides about one action of a statement during its compilation (sqlite.org/c3ref/set_authorizer.html).
func authorize(action sqlite3.AuthorizerActionCode, first, second, schema, _ string) sqlite3.AuthorizerReturnCode {
	ok := false
	switch {
	case strings.EqualFold(schema, "temp"):
		// ALTER TABLE does this although it changes nothing
		ok = action == sqlite3.AUTH_UPDATE || action == sqlite3.AUTH_READ
	case action == sqlite3.AUTH_PRAGMA:
		name := strings.ToLower(first)
		ok = slices.Contains(pragmas, name) || name == "defer_foreign_keys"
	case slices.Contains(writes, action):
		ok = !strings.EqualFold(first, migrationTable)
	case slices.Contains(tableSecond, action):
		ok = !strings.EqualFold(second, migrationTable)
	default:
		ok = slices.Contains(allowed, action)
	}
	if !ok {
		return sqlite3.AUTH_DENY
	}
	return sqlite3.AUTH_OK
}
