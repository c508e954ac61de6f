package grant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Explain describes grants in plain words, one line each. Empty grants have a line too. language is a BCP 47 tag; all
// except Japanese give English.
func (g Grants) Explain(language string) []string {
	w := englishGrants
	if lang.Japanese(language) {
		w = japaneseGrants
	}
	var lines []string
	for _, rule := range g.HTTP {
		lines = append(lines, w.http(rule))
	}
	for _, mount := range g.Mounts {
		lines = append(lines, w.mount(mount))
	}
	if g.SQL != nil {
		lines = append(lines, fmt.Sprintf(w.database, strictyaml.FormatSize(g.SQL.Quota)))
	}
	if g.Exec != nil {
		lines = append(lines, w.exec(g.Exec))
	}
	if warning := g.WorkspaceWarning(language); warning != "" {
		lines = append(lines, warning)
	}
	switch {
	case slices.Contains(g.Tools, anyTool):
		lines = append(lines, w.anyTool)
	case len(g.Tools) > 0:
		lines = append(lines, fmt.Sprintf(w.tools, strings.Join(g.Tools, w.list)))
	}
	if lines == nil {
		return []string{w.nothing}
	}
	return lines
}

// WorkspaceWarning says that commands without a working directory of their own will be refused, and the remedy, if
// commands cannot use the workspace: the first mount, in which they start. It is empty if they can, and without Exec.
func (g Grants) WorkspaceWarning(language string) string {
	if g.Exec == nil || len(g.Mounts) == 0 || g.Mounts[0].ForCommands() {
		return ""
	}
	w := englishGrants
	if lang.Japanese(language) {
		w = japaneseGrants
	}
	return fmt.Sprintf(w.workspace, g.Mounts[0].Name)
}

// grantWording are the format strings of one language for grants.
type grantWording struct {
	list                                     string // separates the items of a list
	rule, moved, paths, private, credential  string
	read, write, deny, quota, noQuota        string
	database, nothing                        string
	programs, anyProgram, folders, workspace string
	tools, anyTool                           string
	variables, isolated, network, unconfined string
}

var englishGrants = grantWording{
	list:       ", ",
	rule:       "http %[1]s: may send %[2]s to %[3]s",
	moved:      ", where requests to %s go",
	paths:      ", only to the paths %s",
	private:    ", private addresses too",
	credential: ", with the credential %s",
	read:       "files /%s: may read what is in %s",
	write:      "files /%s: may read, change and delete what is in %s",
	deny:       ", but not %s",
	quota:      ", at most %s",
	noQuota:    ", without a quota",
	database:   "sql: a database of its own for each tenant, at most %s",
	nothing:    "nothing outside of its sandbox",
	programs:   "commands: may run %s",
	anyProgram: "commands: may run every program that is installed",
	tools:      "tools: may call %s as its caller, under all rules",
	anyTool:    "tools: may call every other tool as its caller, under all rules",
	folders:    ", in these folders (without their quotas; except folders with hidden parts)",
	workspace: "commands: none may run in /%[1]s, because parts of that folder are hidden, and the kernel cannot hide " +
		"a part of a folder from them: without cwd, or with a relative one, they are refused. To let them run there, choose a " +
		"folder that has none of hako's own files in it and no deny: hako plugin approve with --mount %[1]s=DIR",
	variables:  ", with the variables %s",
	isolated:   ", no network",
	network:    ", network: TCP connections to %s",
	unconfined: ", even where the kernel cannot confine them",
}

var japaneseGrants = grantWording{
	list:       "、",
	rule:       "http %[1]s: %[3]s に %[2]s を送信可",
	moved:      " (%s へのリクエストもここに送信)",
	paths:      "、パス %s のみ",
	private:    "、プライベートアドレスも可",
	credential: "、認証情報 %s を付けて送信",
	read:       "files /%s: %s の中の読み取りのみ可",
	write:      "files /%s: %s の中の読み取り、変更、削除が可",
	deny:       "、ただし %s を除く",
	quota:      "、最大 %s",
	noQuota:    "、容量の上限なし",
	database:   "sql: テナントごとの専用データベース、最大 %s",
	nothing:    "サンドボックスの外には何もできません",
	programs:   "commands: %s を実行可",
	anyProgram: "commands: インストールされているすべてのプログラムを実行可",
	tools:      "tools: 呼び出した人として、すべてのルールに従って %s を呼び出し可",
	anyTool:    "tools: 呼び出した人として、すべてのルールに従ってほかのすべてのツールを呼び出し可",
	folders:    "、これらのフォルダーの中で実行 (容量の上限は適用されません。一部を隠しているフォルダーでは実行できません)",
	workspace: "commands: /%[1]s では実行できません (フォルダーの一部を隠していますが、カーネルはフォルダーの一部だけをコマンドから隠すことができません)。" +
		"cwd を省略したコマンドと cwd が相対パスのコマンドは拒否されます。/%[1]s で実行するには、hako 自身のファイルも deny もない" +
		"フォルダーを選んでください: hako plugin approve に --mount %[1]s=DIR を指定します",
	variables:  "、環境変数 %s を渡す",
	isolated:   "、ネットワークなし",
	network:    "、ネットワーク: %s への TCP 接続",
	unconfined: "、カーネルで制限できない環境でも実行",
}

func (w grantWording) http(rule HTTPRule) string {
	methods := rule.Methods
	if len(methods) == 0 {
		methods = []string{"GET", "HEAD"}
	}
	line := fmt.Sprintf(w.rule, rule.Name, strings.Join(methods, w.list), rule.URL)
	if rule.Asked != "" {
		line += fmt.Sprintf(w.moved, rule.Asked)
	}
	if len(rule.Paths) > 0 {
		line += fmt.Sprintf(w.paths, strings.Join(rule.Paths, w.list))
	}
	if rule.Private {
		line += w.private
	}
	if rule.Credential != "" {
		line += fmt.Sprintf(w.credential, rule.Credential)
	}
	return line
}

func (w grantWording) mount(mount Mount) string {
	format := w.read
	if mount.Write {
		format = w.write
	}
	line := fmt.Sprintf(format, mount.Name, mount.Path)
	if len(mount.Deny) > 0 {
		line += fmt.Sprintf(w.deny, strings.Join(mount.Deny, w.list))
	}
	switch {
	case !mount.Write:
	case mount.Quota > 0:
		line += fmt.Sprintf(w.quota, strictyaml.FormatSize(mount.Quota))
	default:
		line += w.noQuota
	}
	return line
}

func (w grantWording) exec(e *Exec) string {
	line := fmt.Sprintf(w.programs, strings.Join(e.Programs, w.list))
	if slices.Contains(e.Programs, manifest.AnyProgram) {
		line = w.anyProgram
	}
	line += w.folders
	if len(e.Env) > 0 {
		line += fmt.Sprintf(w.variables, strings.Join(e.Env, w.list))
	}
	if len(e.Connect) == 0 {
		line += w.isolated
	} else {
		line += fmt.Sprintf(w.network, strings.Join(e.Connect, w.list))
	}
	if e.Unconfined {
		line += w.unconfined
	}
	return line
}
