package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
)

// advice explains an outcome and its remedy. {plugin} and similar placeholders stand for values of the call.
type advice struct {
	// side names the place to look first: the result of the "tool", a "plugin" that broke its contract, a "limit",
	// the "caller", the "policy" or the "host".
	side         string
	text, remedy manifest.Text
}

func advise(side, text, textJA, remedy, remedyJA string) advice {
	return advice{side, manifest.Text{"en": text, "ja": textJA}, manifest.Text{"en": remedy, "ja": remedyJA}}
}

// advices has advice for every outcome that is a failure, and for refusals, which somebody may want to change.
var advices = map[pipeline.Outcome]advice{
	pipeline.ToolError: advise("tool",
		"The tool reported an error.",
		"ツールがエラーを返しました。",
		"The caller has the tool's reason. The console shows it if audit.fields lists output_summary for the tool.",
		"理由は呼び出し元への応答にあります。audit.fields でこのツールに output_summary を指定すると、コンソールにも表示されます。"),
	pipeline.InvalidArguments: advise("caller",
		"The arguments do not match the tool's input schema.",
		"引数がツールの入力スキーマに一致しません。",
		"The caller was told which arguments are wrong. If a model keeps failing, describe them better in the schema.",
		"呼び出し元には該当箇所が通知されています。モデルが繰り返し失敗する場合は、スキーマの説明をより明確にしてください。"),
	pipeline.InvalidResult: advise("plugin",
		"The tool's result does not match its own output schema.",
		"ツールの結果が自身の出力スキーマに一致しません。",
		"Report this to the author of {plugin}.",
		"{plugin} の作者に報告してください。"),
	pipeline.NotFound: advise("caller",
		"There is no such tool, resource or prompt.",
		"そのツール、リソース、プロンプトは存在しません。",
		"Check that its plugin is in service and that the client's list of tools is not an old one.",
		"プラグインが稼働しているか、クライアントの一覧が古くないかを確認してください。"),
	pipeline.NotAllowed: advise("policy",
		"The policy, a person or a missing approval of the plugin did not allow it.",
		"ポリシー、担当者の拒否、または未承認のため許可されませんでした。",
		"Why? shows which rule decided. If the plugin waits for approval, approve it.",
		"「理由」で、判断したルールを確認できます。プラグインが承認待ちであれば承認してください。"),
	pipeline.Timeout: advise("limit",
		"The call took longer than its time limit.",
		"呼び出しが時間の上限を超えました。",
		"See on the call's page what it waited for, or raise plugin.{plugin}.limits.time in hako.yaml.",
		"呼び出しのページで何を待っていたかを確認するか、hako.yaml の plugin.{plugin}.limits.time を引き上げてください。"),
	pipeline.CPU: advise("limit",
		"The plugin exceeded its CPU limit.",
		"プラグインの計算量が上限を超えました。",
		"Ask for less in one call, or raise plugin.{plugin}.limits.cpu in hako.yaml.",
		"要求を小さくするか、hako.yaml の plugin.{plugin}.limits.cpu を引き上げてください。"),
	pipeline.Memory: advise("limit",
		"The plugin exceeded its memory limit.",
		"プラグインのメモリー使用量が上限を超えました。",
		"Ask for less in one call, or raise plugin.{plugin}.limits.memory in hako.yaml.",
		"要求を小さくするか、hako.yaml の plugin.{plugin}.limits.memory を引き上げてください。"),
	pipeline.Size: advise("limit",
		"The arguments or the result were larger than the limit.",
		"引数または結果のサイズが上限を超えました。",
		"Ask for less in one call, or raise limits.input or limits.output of plugin.{plugin} in hako.yaml.",
		"要求を小さくするか、hako.yaml の plugin.{plugin} の limits.input または limits.output を引き上げてください。"),
	pipeline.Busy: advise("limit",
		"The queue was full, a rate or quota was used up{quota}, or no memory was free.",
		"待ち行列が一杯か、頻度またはクォータの上限に達したか{quota}、空きメモリーがありませんでした。",
		"Wait, or raise concurrency, queue or rate of plugin.{plugin}, the quota in the policy, or memoryBudget.",
		"しばらく待つか、plugin.{plugin} の concurrency、queue、rate、ポリシーの quota、または memoryBudget を引き上げてください。"),
	pipeline.Trap: advise("plugin",
		"The plugin crashed during the call. Other calls are not affected.",
		"呼び出し中にプラグインが異常終了しました。ほかの呼び出しには影響しません。",
		"Report it to the author of {plugin}, with the error and the plugin's log lines from the call's page.",
		"呼び出しのページにあるエラーとプラグインのログを {plugin} の作者に報告してください。"),
	pipeline.Internal: advise("host",
		"hako had an internal error.",
		"hako 自体のエラーです。",
		"hako's log has the details. Check first that the audit log and the store can be written.",
		"詳細は hako のログにあります。まず監査ログとストアに書き込めるかを確認してください。"),
}

// failureKey is a tool and a cause of its failures. Detail is the policy's rule or the exhausted quota.
type failureKey struct {
	tool    string
	outcome pipeline.Outcome
	detail  string
}

// failure are the failures of a tool with one cause since the start of the process.
type failure struct {
	count       int
	first, last time.Time
	// example is the last one.
	example finishedCall
}

// maxFailures bounds the failures, by tool and cause. Another one replaces the one that happened least recently.
const maxFailures = 100

// addFailure counts a call that failed. The caller holds mu.
func (t *Traffic) addFailure(call *finishedCall) {
	key := failureKey{call.Name, call.Outcome, call.Quota}
	if call.Outcome == pipeline.NotAllowed {
		key.detail = call.Rule
	}
	f := t.failures[key]
	if f == nil {
		if len(t.failures) >= maxFailures {
			t.forgetFailure()
		}
		f = &failure{first: call.Started.UTC()}
		t.failures[key] = f
	}
	f.count, f.last, f.example = f.count+1, call.Started.UTC(), *call
}

// forgetFailure removes the failure that happened least recently.
func (t *Traffic) forgetFailure() {
	var oldest failureKey
	for key, f := range t.failures {
		if o := t.failures[oldest]; o == nil || f.last.Before(o.last) {
			oldest = key
		}
	}
	delete(t.failures, oldest)
}

// failureJSON are the failures of a tool with one cause.
type failureJSON struct {
	Tool    string    `json:"tool"`
	Plugin  string    `json:"plugin"`
	Outcome string    `json:"outcome"`
	Side    string    `json:"side"`
	Detail  string    `json:"detail,omitempty"`
	Text    string    `json:"text"`
	Remedy  string    `json:"remedy"`
	Count   int       `json:"count"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	// Example is the last one. Error is its text, as far as it is shown.
	Example *callEvent `json:"example"`
	Error   string     `json:"error,omitempty"`
}

// failuresJSON has failures, the last one first.
type failuresJSON struct {
	Items []failureJSON `json:"items"`
	// Since is the start of the process. Replica is its name, if there are others.
	Since   time.Time `json:"since"`
	Replica string    `json:"replica,omitempty"`
}

func (c *Console) failures(q *request) (any, error) {
	replica, err := c.replicaName(q.Context())
	if err != nil {
		return nil, err
	}
	answer := &failuresJSON{Items: []failureJSON{}, Since: c.started.UTC(), Replica: replica}
	t := c.options.Traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, f := range t.failures {
		e, a := newCallEvent(&f.example.Record), advices[key.outcome]
		answer.Items = append(answer.Items, failureJSON{
			Tool: key.tool, Plugin: e.Plugin, Outcome: string(key.outcome), Side: a.side,
			Detail: key.detail, Text: e.fill(a.text.In(q.language)), Remedy: e.fill(a.remedy.In(q.language)),
			Count: f.count, First: f.first, Last: f.last, Example: e, Error: f.example.Error,
		})
	}
	slices.SortFunc(answer.Items, func(a, b failureJSON) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Outcome, b.Outcome))
	})
	return answer, nil
}

// fill replaces the placeholders of an advice with values of the call.
func (e *callEvent) fill(text string) string {
	quota := ""
	if e.quota != "" {
		quota = fmt.Sprintf(" (%s)", e.quota)
	}
	named := func(name, without string) string {
		if name == "" {
			return without
		}
		return name
	}
	return strings.NewReplacer(
		"{plugin}", named(e.Plugin, "NAME"), "{quota}", quota,
	).Replace(text)
}
