package grant_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
)

// asking returns the manifest of a plugin that asks for every kind of permission.
func asking() *manifest.Manifest {
	return &manifest.Manifest{Name: "every", Version: "2.0.0", Permissions: manifest.Permissions{
		HTTP: []manifest.HTTPPermission{{Name: "api", URL: "https://api.example.com/v1/", Credential: "api-key"},
			{Name: "open", URL: "https://open.example.com"}},
		Files: []manifest.FilePermission{{Mount: "work", Write: true}, {Mount: "more"}},
		SQL:   &manifest.SQLPermission{},
		Exec:  &manifest.ExecPermission{Programs: []string{"git"}},
	}}
}

func TestProposalKeepsWhatWasSettled(t *testing.T) {
	t.Parallel()
	before := grant.Consent{
		Name: "every", Version: "1.0.0", Note: "for the team", RevokedAt: time.Unix(1, 0),
		Mounts: map[string]grant.Mount{"work": {Name: "work", Path: "/srv/work"},
			"gone": {Name: "gone", Path: "/srv/gone"}},
		HTTP: map[string]grant.HTTPMapping{"api": {Credential: "other-key"},
			"open": {Private: true, Credential: "never"}},
		Exec: grant.Exec{Programs: []string{"ls"}},
	}
	p := grant.Propose([]grant.Consent{{Name: "another"}, before}, asking(), "sha256:1", "aki")
	switch c := p.Consent; {
	case p.Before == nil || p.Updates():
		t.Errorf("before = %v, updates = %v, want a consent that is revoked", p.Before, p.Updates())
	case c.Version != "2.0.0" || c.Digest != "sha256:1" || c.ApprovedBy != "aki" ||
		c.Note != "for the team" || !c.RevokedAt.IsZero():
		t.Errorf("the consent is %+v", c)
	case len(c.Mounts) != 1 || c.Mounts["work"].Path != "/srv/work":
		t.Errorf("mounts = %v, want what is still asked for", c.Mounts)
	case c.HTTP["api"].Credential != "other-key" || !c.HTTP["open"].Private || c.HTTP["open"].Credential != "":
		t.Errorf("http = %v, want no credential where none is asked for", c.HTTP)
	case !slices.Equal(c.Exec.Programs, []string{"ls"}):
		t.Errorf("programs = %v, want those of the earlier consent", c.Exec.Programs)
	}
	if _, err := p.Grants(nil); err == nil || !strings.Contains(err.Error(), "--mount more=DIR") {
		t.Errorf("grants: %v, want the missing mount with its remedy", err)
	}
	if p := grant.Propose(nil, asking(), "sha256:1", "aki"); p.Before != nil ||
		!slices.Equal(p.Consent.Exec.Programs, []string{"git"}) {
		t.Errorf("a first proposal: before = %v, programs = %v", p.Before, p.Consent.Exec.Programs)
	}
}

func TestProposalVersion(t *testing.T) {
	t.Parallel()
	propose := func(change func(*manifest.Manifest, *grant.Consent, map[string]any) (digest string)) string {
		m, c, config := asking(), grant.Consent{Name: "every", Mounts: map[string]grant.Mount{"work": {Path: "/a"},
			"more": {Path: "/b"}}}, map[string]any{}
		digest := change(m, &c, config)
		p := grant.Propose([]grant.Consent{c}, m, digest, "aki")
		g, err := p.Grants(config)
		if err != nil {
			t.Fatal(err)
		}
		return p.Version(g)
	}
	same := func(*manifest.Manifest, *grant.Consent, map[string]any) string { return "sha256:1" }
	first := propose(same)
	if propose(same) != first {
		t.Error("the version is another one although nothing has changed")
	}
	for name, change := range map[string]func(*manifest.Manifest, *grant.Consent, map[string]any) string{
		"another file": func(*manifest.Manifest, *grant.Consent, map[string]any) string { return "sha256:2" },
		"asks for more": func(m *manifest.Manifest, _ *grant.Consent, _ map[string]any) string {
			m.Permissions.HTTP[1].Methods = []string{"DELETE"}
			return "sha256:1"
		},
		"another folder": func(_ *manifest.Manifest, c *grant.Consent, _ map[string]any) string {
			c.Mounts["work"] = grant.Mount{Path: "/etc"}
			return "sha256:1"
		},
		"another address in the configuration": func(m *manifest.Manifest, _ *grant.Consent,
			config map[string]any) string {
			m.Permissions.HTTP[1].ConfigKey, config["url"] = "url", "https://elsewhere.example.com"
			return "sha256:1"
		},
	} {
		if propose(change) == first {
			t.Errorf("%s: the version is the same", name)
		}
	}
}

func TestGrantsInPlainWords(t *testing.T) {
	t.Parallel()
	full := grant.Grants{
		HTTP: []grant.HTTPRule{{Name: "api", URL: "https://api.example.com", Paths: []string{"v1/**"},
			Private: true, Credential: "key"}},
		Mounts: []grant.Mount{{Name: "work", Path: "/srv/work", Write: true,
			Deny: []string{"**/.git/**"}, Quota: 1 << 20}},
		SQL: &grant.SQL{Quota: 1 << 20},
		Exec: &grant.Exec{Programs: []string{"*"}, Env: []string{"LANG"},
			Connect: []string{"github.com:443", "db.example:5432:private"}, Unconfined: true},
	}
	for language, want := range map[string][]string{
		"en": {
			"http api: may send GET, HEAD to https://api.example.com, only to the paths v1/**, private addresses " +
				"too, with the credential key",
			"files /work: may read, change and delete what is in /srv/work, but not **/.git/**, at most 1MiB",
			"sql: a database of its own for each tenant, at most 1MiB",
			"commands: may run every program that is installed, in these folders (without their quotas; except " +
				"folders with hidden parts), with the variables LANG, " +
				"network: TCP connections to github.com:443, db.example:5432:private, even where the kernel cannot " +
				"confine them",
			"commands: none may run in /work, because parts of that folder are hidden, and the kernel cannot hide a " +
				"part of a folder from them: without cwd, or with a relative one, they are refused. To let them run " +
				"there, choose a folder that has none of hako's own files in it and no deny: hako plugin approve " +
				"with --mount work=DIR",
		},
		"ja-JP": {
			"http api: https://api.example.com に GET、HEAD を送信可、パス v1/** のみ、プライベートアドレスも可、認証情報 key を付けて送信",
			"files /work: /srv/work の中の読み取り、変更、削除が可、ただし **/.git/** を除く、最大 1MiB",
			"sql: テナントごとの専用データベース、最大 1MiB",
			"commands: インストールされているすべてのプログラムを実行可、これらのフォルダーの中で実行 (容量の上限は適用されません。一部を隠しているフォルダーでは実行できません)" +
				"、環境変数 LANG を渡す、ネットワーク: github.com:443、db.example:5432:private への TCP 接続、カーネルで制限できない環境でも実行",
			"commands: /work では実行できません (フォルダーの一部を隠していますが、カーネルはフォルダーの一部だけをコマンドから隠すことができません)。" +
				"cwd を省略したコマンドと cwd が相対パスのコマンドは拒否されます。/work で実行するには、hako 自身のファイルも deny もないフォルダーを選んでください: " +
				"hako plugin approve に --mount work=DIR を指定します",
		},
	} {
		if got := full.Explain(language); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", language, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := (grant.Grants{}).Explain(language); len(got) != 1 {
			t.Errorf("%s: nothing is %q", language, got)
		}
	}
}
