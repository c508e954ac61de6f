package sqlbroker_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/host/brokers/sqlbroker"
)

func TestFileName(t *testing.T) {
	t.Parallel()
	for tenant, want := range map[string]string{
		"": "@default.db", "acme": "acme.db", "a-b_9": "a-b_9.db", "Acme": "%41cme.db", "@default": "%40default.db",
		"..": "%2e%2e.db", "a/b": "a%2fb.db",
		"a.db": "a%2edb.db", "%41cme": "%2541cme.db", "con": "%63on.db", "console": "console.db", "a b": "a%20b.db",
		"é": "%c3%a9.db", "\x00": "%00.db",
		strings.Repeat("a", 200): strings.Repeat("a", 200) + ".db",
		strings.Repeat("a", 201): "@a92efd82109373e58f9a2056dee01e807e216ce6075f7051207c0a9f7d666e50.db",
	} {
		if got := sqlbroker.FileName(tenant); got != want {
			t.Errorf("%q is in %s, want %s", tenant, got, want)
		}
	}
	for _, file := range []string{"", "acme", "Acme.db", "%4.db", "%zz.db", "%61cme.db", "@other.db",
		"acme.db-wal", "con.db", "%C3.db"} {
		if tenant, ok := sqlbroker.Tenant(file); ok {
			t.Errorf("%s is of the tenant %q", file, tenant)
		}
	}
}

func FuzzFileName(f *testing.F) {
	for _, seed := range []string{"", "acme", "A/../b", "日本", "con", "@default"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tenant string) {
		file := sqlbroker.FileName(tenant)
		if strings.ContainsAny(file, "/\\:. \x00") && strings.Count(file, ".") != 1 || !utf8.ValidString(file) ||
			strings.ToLower(file) != file || len(file) > 220 {
			t.Fatalf("%q is in %q", tenant, file)
		}
		hashed := file[0] == '@' && tenant != ""
		if back, ok := sqlbroker.Tenant(file); ok == hashed || ok && back != tenant {
			t.Errorf("%q is in %q, which is of %q, %v", tenant, file, back, ok)
		}
	})
}
