// Command gitea is Gitea with an SQLite that needs no C compiler.
package main

import (
	"database/sql"
	"database/sql/driver"
	"os"
	"strings"

	"code.gitea.io/gitea/cmd"
	"code.gitea.io/gitea/modules/log"
	"code.gitea.io/gitea/modules/setting"
	"modernc.org/sqlite"

	// Each kind of document registers itself; comments are in Markdown.
	_ "code.gitea.io/gitea/modules/markup/markdown"
)

const version = "1.26.0"

func main() {
	setting.AppVer = version
	setting.EnableSQLite3 = true
	setting.SupportedDatabaseTypes = append(setting.SupportedDatabaseTypes, "sqlite3")
	sql.Register("sqlite3", database{})

	app := cmd.NewMainApp(cmd.AppVersion{Version: version})
	err := cmd.RunMainApp(app, os.Args...)
	log.GetManager().Close() // writes what is still queued
	if err != nil {
		os.Exit(1)
	}
}

// database opens what Gitea names in the words of another driver.
type database struct{ sqlite.Driver }

func (d database) Open(name string) (driver.Conn, error) {
	file, _, _ := strings.Cut(name, "?")
	return d.Driver.Open(file + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_txlock=immediate")
}
