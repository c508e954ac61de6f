package grant

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Explain describes permissions in plain words, one line each, with the author's reasons: "may send GET, HEAD to
// https://www.jma.go.jp/bosai/, because: To fetch forecasts." language is a BCP 47 tag; all except Japanese give
// English. The lines contain text of the plugin's author, which has no control and hidden characters in a valid
// manifest.
func Explain(p manifest.Permissions, language string) []string {
	w := wordingFor(language)
	var lines []string
	for _, h := range p.HTTP {
		lines = append(lines, w.http(h, language))
	}
	for _, f := range p.Files {
		lines = append(lines, w.file(f, language))
	}
	if p.SQL != nil {
		lines = append(lines, w.sql(p.SQL, language))
	}
	if p.Exec != nil {
		lines = append(lines, w.exec(p.Exec, language))
	}
	if p.Tools != nil {
		lines = append(lines, w.tools(p.Tools, language))
	}
	if remembers(p.State) {
		lines = append(lines, w.state(p.State))
	}
	if text := w.limits(w.larger, p.Limits, manifest.DefaultLimits, language); text != "" {
		lines = append(lines, text)
	}
	if lines == nil {
		return []string{w.nothing}
	}
	return lines
}

// wording are the format strings of one language. Their arguments are numbered, because languages order them
// differently.
type wording struct {
	send, anyHost, subdomains, only, config, inside string
	credential                                      string
	read, write, roots, database, because, nothing  string
	programs, anyProgram                            string
	toolNames, anyTool                              string
	session, shared                                 string
	larger, limit, comma                            string

	addAddress, addMethods, addPaths, addConfig, addCredential, addWrite, addRoots, addQuota string
	addPrograms, addAnyProgram, addTools, addAnyTool, addLimits, addClaims                   string
}

var english = wording{
	send:       "may send %[1]s to %[2]s",
	anyHost:    "every host on the network (%[1]s)",
	subdomains: "every subdomain of %[1]s (%[2]s)",
	only:       " (only %[1]s)",
	config:     ", or to the address that you set as %[1]s",
	inside:     "%[1]s (inside your own network)",
	credential: ", and sends your credential %[1]s along",
	read:       "may read the files in the folder that you choose as %[1]s",
	write:      "may read, change and delete the files in the folder that you choose as %[1]s",
	roots:      ", also in the folders that you allow with --allow-path or allowPaths, and learns where all of these are",
	database:   "may keep a database of its own, up to %[1]s for each tenant",
	programs:   "may run programs of your machine on the files in these folders: %[1]s",
	anyProgram: "may run those programs of your machine that you name, on the files in these folders",
	toolNames:  "may call other tools as whoever calls it, under all of your rules: %[1]s",
	anyTool:    "may call every other tool as whoever calls it, under all of your rules",
	because:    "%[1]s, because: %[2]s",
	nothing:    "asks for nothing: it reaches no network and no files",
	session:    "remembers what happened in earlier calls of the same session",
	shared: "remembers what happened in earlier calls, whoever the callers were: one caller's data may reach " +
		"another of the same tenant",
	addAddress: "%[1]s: now asks for %[2]s instead of %[3]s",
	addMethods: "%[1]s: also asks to send %[2]s",
	addPaths:   "%[1]s: also asks for the paths %[2]s",
	addConfig:  "%[1]s: also asks to be pointed to the address set as %[2]s",
	addWrite:   "%[1]s: also asks to change and delete files",
	addRoots:   "%[1]s: also asks for the folders that you allow with --allow-path or allowPaths, and to learn where all of these are",
	addQuota:   "sql: asks to keep up to %[1]s instead of %[2]s",

	addPrograms:   "exec: also asks to run %[1]s",
	addAnyProgram: "exec: now asks to run whichever programs you name",
	addTools:      "tools: also asks to call %[1]s",
	addAnyTool:    "tools: now asks to call every other tool",
	larger:        "asks for larger limits than others have: %[1]s",
	limit:         "%[1]s: %[2]s instead of %[3]s",
	comma:         ", ",
	addLimits:     "limits: now asks for larger ones: %[1]s",
	addClaims:     "tool %[1]s: now says of itself what your rules may rely on: %[2]s",
	addCredential: "%[1]s: also sends your credential %[2]s along to %[3]s",
}

var japanese = wording{
	send:       "%[2]s に %[1]s を送信できます",
	anyHost:    "ネットワーク上のすべてのホスト（%[1]s）",
	subdomains: "%[1]s のすべてのサブドメイン（%[2]s）",
	only:       "（%[1]s のみ）",
	config:     "（%[1]s に設定した宛先にも）",
	inside:     "%[1]s（自分のネットワークの内側）",
	credential: "。あなたの認証情報 %[1]s を付けて送信します",
	read:       "%[1]s として選んだフォルダーのファイルを読み取れます",
	write:      "%[1]s として選んだフォルダーのファイルを読み取り、変更、削除できます",
	roots:      "。--allow-path または allowPaths で許可したフォルダーでも同様です。これらのフォルダーの場所も伝わります",
	database:   "専用のデータベースを持てます（テナントごとに %[1]s まで）",
	programs:   "このフォルダーのファイルに対して、このマシンの次のプログラムを実行できます: %[1]s",
	anyProgram: "このフォルダーのファイルに対して、あなたが指定したこのマシンのプログラムを実行できます",
	toolNames:  "呼び出した人として、すべてのルールに従って次のほかのツールを呼び出せます: %[1]s",
	anyTool:    "呼び出した人として、すべてのルールに従ってほかのすべてのツールを呼び出せます",
	because:    "%[1]s。理由: %[2]s",
	nothing:    "何も求めていません。ネットワークにもファイルにもアクセスしません",
	session:    "同じセッションの以前の呼び出しの内容を覚えています",
	shared:     "誰の呼び出しであっても、以前の呼び出しの内容を覚えています。ある利用者のデータが同じテナントの別の利用者に渡ることがあります",
	addAddress: "%[1]s: %[3]s に代えて %[2]s を求めています",
	addMethods: "%[1]s: %[2]s の送信も求めています",
	addPaths:   "%[1]s: パス %[2]s も求めています",
	addConfig:  "%[1]s: %[2]s に設定した宛先への送信も求めています",
	addWrite:   "%[1]s: ファイルの変更と削除も求めています",
	addRoots:   "%[1]s: --allow-path または allowPaths で許可したフォルダーと、これらのフォルダーの場所も求めています",
	addQuota:   "sql: %[2]s に代えて %[1]s までの保存を求めています",

	addPrograms:   "exec: %[1]s の実行も求めています",
	addAnyProgram: "exec: あなたが指定する任意のプログラムの実行を求めています",
	addTools:      "tools: %[1]s の呼び出しも求めています",
	addAnyTool:    "tools: ほかのすべてのツールの呼び出しを求めています",
	larger:        "通常より大きな上限を求めています: %[1]s",
	limit:         "%[1]s %[3]s → %[2]s",
	comma:         "、",
	addLimits:     "limits: より大きな上限を求めています: %[1]s",
	addClaims:     "ツール %[1]s: ルールの判断に使われるヒントを新たに宣言しています: %[2]s",
	addCredential: "%[1]s: あなたの認証情報 %[2]s を %[3]s への送信に付けることも求めています",
}

func wordingFor(language string) wording {
	if lang.Japanese(language) {
		return japanese
	}
	return english
}

func (wording) f(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func (w wording) http(p manifest.HTTPPermission, language string) string {
	line := w.f(w.send, strings.Join(methods(p), ", "), w.address(p.URL))
	if len(p.Paths) > 0 {
		line += w.f(w.only, strings.Join(p.Paths, ", "))
	}
	if p.ConfigKey != "" {
		line += w.f(w.config, p.ConfigKey)
	}
	if p.Credential != "" {
		line += w.f(w.credential, p.Credential)
	}
	return w.reason(line, p.Reason, language)
}

func (w wording) file(p manifest.FilePermission, language string) string {
	format := w.read
	if p.Write {
		format = w.write
	}
	line := w.f(format, p.Mount)
	if p.Roots {
		line += w.roots
	}
	return w.reason(line, p.Reason, language)
}

func (w wording) sql(p *manifest.SQLPermission, language string) string {
	return w.reason(w.f(w.database, strictyaml.FormatSize(quota(p))), p.Reason, language)
}

func (w wording) state(s manifest.State) string {
	if s == manifest.StateShared {
		return w.shared
	}
	return w.session
}

func (w wording) reason(line string, reason manifest.Text, language string) string {
	if text := reason.In(language); text != "" {
		return w.f(w.because, line, text)
	}
	return line
}

// address describes a base URL and points out wildcards and internal addresses.
func (w wording) address(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	host := u.Hostname()
	domain, wildcard := strings.CutPrefix(host, "*.")
	switch {
	case host == "*":
		return w.f(w.anyHost, base)
	case wildcard:
		return w.f(w.subdomains, domain, base)
	case address.IsPrivate(host):
		return w.f(w.inside, base)
	}
	return base
}
