package grant_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

var (
	jma = manifest.HTTPPermission{
		Name: "jma", URL: "https://www.jma.go.jp/bosai/", ConfigKey: "base_url",
		Paths:  []string{"forecast/**", "const/area.json"},
		Reason: manifest.Text{"en": "To fetch forecasts.", "ja": "予報を取得するため。"},
	}
	workspace = manifest.FilePermission{Mount: "workspace", Reason: manifest.Text{"en": "To read files."}}
)

func permissions(items ...any) manifest.Permissions {
	var p manifest.Permissions
	for _, item := range items {
		switch item := item.(type) {
		case manifest.HTTPPermission:
			p.HTTP = append(p.HTTP, item)
		case manifest.FilePermission:
			p.Files = append(p.Files, item)
		case manifest.SQLPermission:
			p.SQL = &item
		}
	}
	return p
}

// with returns a changed copy of p.
func with[P any](p P, change func(*P)) P {
	change(&p)
	return p
}

type httpPermission = manifest.HTTPPermission

func TestDigest(t *testing.T) {
	t.Parallel()
	logs := manifest.FilePermission{Mount: "logs", Write: true}
	api := manifest.HTTPPermission{Name: "api", URL: "https://api.example.com/", Methods: []string{"POST", "GET"}}
	database := manifest.SQLPermission{Migrations: []string{"CREATE TABLE a (b)"}}
	base := permissions(jma, api, workspace, logs, database)
	for name, same := range map[string]manifest.Permissions{
		"order": permissions(logs, database, api, workspace, jma),
		"reasons": permissions(with(jma, func(p *httpPermission) { p.Reason = nil }), api,
			workspace, logs, database),
		"methods": permissions(jma, with(api,
			func(p *httpPermission) { p.Methods = []string{"GET", "POST", "GET"} }), workspace, logs, database),
		"default methods": permissions(with(jma, func(p *httpPermission) { p.Methods = []string{"HEAD", "GET"} }), api,
			workspace, logs, database),
		"paths": permissions(with(jma,
			func(p *httpPermission) { p.Paths = []string{"const/area.json", "forecast/**"} }), api,
			workspace, logs, database),
		"spelling": permissions(with(jma,
			func(p *httpPermission) { p.URL = "HTTPS://WWW.JMA.go.jp:443/bosai" }), api, workspace, logs, database),
		"migrations": permissions(jma, api, workspace, logs, with(database,
			func(p *manifest.SQLPermission) { p.Migrations = append(p.Migrations, "x") })),
		"default quota": permissions(jma, api, workspace, logs, with(database,
			func(p *manifest.SQLPermission) { p.Quota = manifest.DefaultSQLQuota })),
	} {
		if grant.Digest(same) != grant.Digest(base) {
			t.Errorf("%s: the digest changes", name)
		}
	}
	seen := map[string]string{grant.Digest(base): "base"}
	for name, other := range map[string]manifest.Permissions{
		"nothing": {},
		"no sql":  permissions(jma, api, workspace, logs),
		"quota":   permissions(jma, api, workspace, logs, manifest.SQLPermission{Quota: 5 << 20}),
		"credential": permissions(with(jma, func(p *httpPermission) { p.Credential = "jma" }), api,
			workspace, logs, database),
		"less": permissions(jma, api, workspace),
		"write": permissions(jma, api, with(workspace, func(p *manifest.FilePermission) { p.Write = true }), logs,
			database),
		"name": permissions(with(jma, func(p *httpPermission) { p.Name = "jma2" }), api,
			workspace, logs, database),
		"url": permissions(with(jma, func(p *httpPermission) { p.URL = "https://www.jma.go.jp/" }), api,
			workspace, logs, database),
		"configKey": permissions(with(jma, func(p *httpPermission) { p.ConfigKey = "" }), api,
			workspace, logs, database),
		"methods": permissions(with(jma, func(p *httpPermission) { p.Methods = []string{"GET"} }), api,
			workspace, logs, database),
		"paths": permissions(with(jma, func(p *httpPermission) { p.Paths = nil }), api, workspace, logs, database),
		"one path": permissions(with(jma, func(p *httpPermission) {
			p.Paths = []string{"forecast/**,const/area.json"}
		}), api, workspace, logs, database),
	} {
		d := grant.Digest(other)
		if same, ok := seen[d]; ok {
			t.Errorf("%s: the digest is that of %s", name, same)
		}
		seen[d] = name
	}
	if got, want := grant.Digest(permissions(jma)), "sha256:"; !strings.HasPrefix(got, want) ||
		len(got) != len(want)+64 {
		t.Errorf("got %s", got)
	}
}

func TestAdditions(t *testing.T) {
	t.Parallel()
	database, credential := manifest.SQLPermission{Quota: 5 << 20}, with(jma,
		func(p *httpPermission) { p.Credential = "freee" })
	anywhere := with(jma, func(p *httpPermission) { p.Paths, p.ConfigKey = nil, "" })
	for _, c := range []struct {
		name            string
		approved, asked any
		want            []string
	}{
		{"same", jma, jma, nil},
		{"nothing any more", jma, nil, nil},
		{"other spelling", jma, with(jma, func(p *httpPermission) { p.URL = "https://WWW.jma.go.jp:443/bosai" }), nil},
		{"fewer paths", jma, with(jma, func(p *httpPermission) { p.Paths = []string{"forecast/**"} }), nil},
		{"a path within a glob", jma, with(jma,
			func(p *httpPermission) { p.Paths = []string{"forecast/data/130000.json"} }), nil},
		{"no configKey any more", jma, with(jma, func(p *httpPermission) { p.ConfigKey = "" }), nil},
		{"narrower address", anywhere, with(anywhere, func(p *httpPermission) { p.URL += "forecast/" }), nil},
		{"a subdomain", with(anywhere, func(p *httpPermission) { p.URL = "https://*.jma.go.jp" }), anywhere, nil},
		{"paths where all were allowed", anywhere, with(jma, func(p *httpPermission) { p.ConfigKey = "" }), nil},
		{"write where write was allowed", manifest.FilePermission{Mount: "w", Write: true},
			manifest.FilePermission{Mount: "w", Write: true}, nil},
		{"read-only where write was allowed", with(workspace, func(p *manifest.FilePermission) { p.Write = true }),
			workspace, nil},

		{"the same credential", credential, credential, nil},
		{"no credential any more", credential, jma, nil},
		{"a smaller database", manifest.SQLPermission{}, database, nil},
		{"the same database, more migrations", database, with(database,
			func(p *manifest.SQLPermission) { p.Migrations = []string{"a"} }), nil},

		{"a credential", jma, credential,
			[]string{"jma: also sends your credential freee along to https://www.jma.go.jp/bosai/"}},
		{"another credential", credential, with(jma, func(p *httpPermission) { p.Credential = "slack" }),
			[]string{"jma: also sends your credential slack along to https://www.jma.go.jp/bosai/"}},
		{"a database", jma, database, []string{"may keep a database of its own, up to 5MiB for each tenant"}},
		{"a larger database", database, manifest.SQLPermission{},
			[]string{"sql: asks to keep up to 64MiB instead of 5MiB"}},
		{"new permission", nil, anywhere,
			[]string{"may send GET, HEAD to https://www.jma.go.jp/bosai/, because: To fetch forecasts."}},
		{"new name", anywhere, with(anywhere, func(p *httpPermission) { p.Name = "other" }),
			[]string{"may send GET, HEAD to https://www.jma.go.jp/bosai/, because: To fetch forecasts."}},
		{"new mount", jma, workspace,
			[]string{"may read the files in the folder that you choose as workspace, because: To read files."}},
		{"write", workspace, with(workspace, func(p *manifest.FilePermission) { p.Write = true }),
			[]string{"workspace: also asks to change and delete files"}},
		{"another host", jma, with(jma, func(p *httpPermission) { p.URL = "https://evil.example/bosai/" }),
			[]string{"jma: now asks for https://evil.example/bosai/ instead of https://www.jma.go.jp/bosai/"}},
		{"any host", jma, with(jma, func(p *httpPermission) { p.URL = "https://*/bosai/" }),
			[]string{"jma: now asks for every host on the network (https://*/bosai/) instead of " +
				"https://www.jma.go.jp/bosai/"}},
		{"wider path", jma, with(jma, func(p *httpPermission) { p.URL = "https://www.jma.go.jp/" }),
			[]string{"jma: now asks for https://www.jma.go.jp/ instead of https://www.jma.go.jp/bosai/"}},
		{"narrower address, but paths", jma, with(jma, func(p *httpPermission) { p.URL += "private/" }),
			[]string{"jma: now asks for https://www.jma.go.jp/bosai/private/ instead of https://www.jma.go.jp/bosai/"}},
		{"http", jma, with(jma, func(p *httpPermission) { p.URL = "http://www.jma.go.jp/bosai/" }),
			[]string{"jma: now asks for http://www.jma.go.jp/bosai/ instead of https://www.jma.go.jp/bosai/"}},
		{"another port", jma, with(jma, func(p *httpPermission) { p.URL = "https://www.jma.go.jp:8443/bosai/" }),
			[]string{"jma: now asks for https://www.jma.go.jp:8443/bosai/ instead of https://www.jma.go.jp/bosai/"}},
		{"methods", jma, with(jma, func(p *httpPermission) { p.Methods = []string{"POST", "GET", "DELETE"} }),
			[]string{"jma: also asks to send DELETE, POST"}},
		{"all paths", jma, with(jma, func(p *httpPermission) { p.Paths = nil }),
			[]string{"jma: also asks for the paths **"}},
		{"more paths", jma, with(jma, func(p *httpPermission) { p.Paths = []string{"forecast/**", "warning/**"} }),
			[]string{"jma: also asks for the paths warning/**"}},
		{"a glob within a glob", with(jma, func(p *httpPermission) { p.Paths = []string{"*"} }),
			with(jma, func(p *httpPermission) { p.Paths = []string{"**"} }),
			[]string{"jma: also asks for the paths **"}},
		{"configKey", anywhere, with(anywhere, func(p *httpPermission) { p.ConfigKey = "base_url" }),
			[]string{"jma: also asks to be pointed to the address set as base_url"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := grant.Additions(permissions(c.approved), permissions(c.asked), "en"); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	asked := permissions(
		with(jma, func(p *httpPermission) { p.Methods = []string{"POST"} }),
		manifest.HTTPPermission{Name: "a", URL: "https://*"}, manifest.HTTPPermission{Name: "b",
			URL: "https://*.example.com/x"},
		manifest.HTTPPermission{Name: "c", URL: "http://192.168.0.1/"},
		with(jma, func(p *httpPermission) { p.Credential, p.Paths = "freee", nil }),
		workspace, manifest.FilePermission{Mount: "logs", Write: true},
		manifest.SQLPermission{Reason: manifest.Text{"en": "To keep tasks.", "ja": "タスクを保存するため。"}},
	)
	for language, want := range map[string]string{
		"en": `may send POST to https://www.jma.go.jp/bosai/ (only forecast/**, const/area.json), or to the address that you set as base_url, because: To fetch forecasts.
may send GET, HEAD to every host on the network (https://*)
may send GET, HEAD to every subdomain of example.com (https://*.example.com/x)
may send GET, HEAD to http://192.168.0.1/ (inside your own network)
may send GET, HEAD to https://www.jma.go.jp/bosai/, or to the address that you set as base_url, and sends your credential freee along, because: To fetch forecasts.
may read the files in the folder that you choose as workspace, because: To read files.
may read, change and delete the files in the folder that you choose as logs
may keep a database of its own, up to 64MiB for each tenant, because: To keep tasks.`,
		"ja-JP": `https://www.jma.go.jp/bosai/ に POST を送信できます（forecast/**, const/area.json のみ）（base_url に設定した宛先にも）。理由: 予報を取得するため。
ネットワーク上のすべてのホスト（https://*） に GET, HEAD を送信できます
example.com のすべてのサブドメイン（https://*.example.com/x） に GET, HEAD を送信できます
http://192.168.0.1/（自分のネットワークの内側） に GET, HEAD を送信できます
https://www.jma.go.jp/bosai/ に GET, HEAD を送信できます（base_url に設定した宛先にも）。あなたの認証情報 freee を付けて送信します。理由: 予報を取得するため。
workspace として選んだフォルダーのファイルを読み取れます。理由: To read files.
logs として選んだフォルダーのファイルを読み取り、変更、削除できます
専用のデータベースを持てます（テナントごとに 64MiB まで）。理由: タスクを保存するため。`,
	} {
		if got := strings.Join(grant.Explain(asked, language), "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", language, got, want)
		}
	}
	if got := grant.Explain(manifest.Permissions{}, "fr"); len(got) != 1 ||
		!strings.HasPrefix(got[0], "asks for nothing") {
		t.Errorf("nothing: got %q", got)
	}
}

// FuzzAdditions: permissions ask for no more than themselves, and if two digests differ, there are additions in at
// least one direction.
func FuzzAdditions(f *testing.F) {
	f.Add("jma", "https://www.jma.go.jp/bosai/", "forecast/**", "GET", "jma", "https://*.go.jp", "a/b", "POST")
	f.Add("a", "https://[::1]/", "", "", "a", "http://localhost", "**", "GET")
	f.Fuzz(func(t *testing.T, name1, url1, path1, method1, name2, url2, path2, method2 string) {
		one := permissions(manifest.HTTPPermission{Name: name1, URL: url1, Paths: []string{path1},
			Methods: []string{method1}})
		two := permissions(manifest.HTTPPermission{Name: name2, URL: url2, Paths: []string{path2},
			Methods: []string{method2}})
		if _, err := manifest.ParseBaseURL(url1); err == nil && len(grant.Additions(one, one, "ja")) > 0 {
			t.Fatalf("%+v asks for more than itself", one)
		}
		if grant.Digest(one) != grant.Digest(two) && len(grant.Additions(one, two, "en")) == 0 &&
			len(grant.Additions(two, one, "en")) == 0 {
			if !strings.ContainsAny(path1+path2, `*?[{\`) {
				t.Fatalf("%+v and %+v differ, but neither asks for more", one, two)
			}
		}
		grant.Explain(two, "en")
	})
}
