// Package storetest gives tests databases that are migrated already.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"queuelab/app/store"
)

// empty is the file of a SQLite database with all migrations, and no rows. It is
// made once: under the race detector the migrations take half a second.
var empty = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "queuelab-storetest-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "empty.db")
	s, err := store.Open(context.Background(), "sqlite:"+path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil { // writes what is in its log into the file
		return nil, err
	}
	return os.ReadFile(path)
})

// SQLite makes a database at that path, and returns its URL. Whether a file that
// is not there is made and migrated is for others to test.
func SQLite(t testing.TB, path string) string {
	t.Helper()
	file, err := empty()
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("a database for the test: %w", err))
	}
	return "sqlite:" + path
}
