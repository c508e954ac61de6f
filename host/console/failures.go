package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
)

// advice explains an outcome and its remedy. {plugin} and similar placeholders stand for values of the call.
type advice struct{ text, remedy manifest.Text }

// advices has advice for every outcome that is a failure.
var advices = map[pipeline.Outcome]advice{
	pipeline.ToolError: {
		manifest.Text{"en": "The tool says that it failed.", "ja": "ツールが失敗を報告しました。"},
		manifest.Text{"en": "Its answer to the caller says why; try it here to see it.",
			"ja": "理由は呼び出し元への応答にあります。この画面から実行して確認できます。"},
	},
	pipeline.InvalidArguments: {
		manifest.Text{"en": "The arguments do not match the tool's input schema.", "ja": "引数がツールの入力スキーマに一致しません。"},
		manifest.Text{"en": "The caller is told which, and can mend them. Models that keep failing need a clearer description in the schema.",
			"ja": "呼び出し元には該当箇所が通知されています。モデルが繰り返し失敗する場合は、スキーマの説明をより明確にしてください。"},
	},
	pipeline.InvalidResult: {
		manifest.Text{"en": "The tool's result does not match its own output schema.",
			"ja": "ツールの結果が自身の出力スキーマに一致しません。"},
		manifest.Text{"en": "Report this to the author of {plugin}.", "ja": "{plugin} の作者に報告してください。"},
	},
	pipeline.NotFound: {
		manifest.Text{"en": "There is no such tool, resource or prompt.", "ja": "そのツール、リソース、プロンプトは存在しません。"},
		manifest.Text{"en": "See whether its plugin is in service, and whether the client has an old list.",
			"ja": "プラグインが稼働しているか、クライアントの一覧が古くないかを確認してください。"},
	},
	pipeline.NotAllowed: {
		manifest.Text{"en": "The policy, a person or a missing consent stood against it.",
			"ja": "ポリシー、担当者の拒否、または未承認のため許可されませんでした。"},
		manifest.Text{"en": "hako policy explain {tool} --as {user} --frontend {frontend} says why. Approve the plugin if it waits.",
			"ja": "hako policy explain {tool} --as {user} --frontend {frontend} で理由を確認できます。プラグインが承認待ちであれば承認してください。"},
	},
	pipeline.Timeout: {
		manifest.Text{"en": "It took longer than its time limit.", "ja": "時間の上限を超えました。"},
		manifest.Text{"en": "See what it waits for, or raise plugin.{plugin}.limits.time in hako.yaml.",
			"ja": "何を待っているかを確認するか、hako.yaml の plugin.{plugin}.limits.time を引き上げてください。"},
	},
	pipeline.CPU: {
		manifest.Text{"en": "It computed more than its limit.", "ja": "計算量の上限を超えました。"},
		manifest.Text{"en": "Have the caller ask for less, or raise plugin.{plugin}.limits.cpu in hako.yaml.",
			"ja": "要求を小さくするか、hako.yaml の plugin.{plugin}.limits.cpu を引き上げてください。"},
	},
	pipeline.Memory: {
		manifest.Text{"en": "It needed more memory than its limit.", "ja": "メモリの上限を超えました。"},
		manifest.Text{"en": "Have the caller ask for less, or raise plugin.{plugin}.limits.memory in hako.yaml.",
			"ja": "要求を小さくするか、hako.yaml の plugin.{plugin}.limits.memory を引き上げてください。"},
	},
	pipeline.Size: {
		manifest.Text{"en": "The arguments or the result were larger than the limit.", "ja": "引数または結果のサイズが上限を超えました。"},
		manifest.Text{"en": "Have the caller ask for less, or raise limits.input or limits.output of plugin.{plugin} in hako.yaml.",
			"ja": "要求を小さくするか、hako.yaml の plugin.{plugin} の limits.input または limits.output を引き上げてください。"},
	},
	pipeline.Busy: {
		manifest.Text{"en": "The queue was full, a rate or quota was used up{quota}, or no memory was free.",
			"ja": "待ち行列が一杯か、頻度または割り当ての上限に達したか{quota}、空きメモリがありませんでした。"},
		manifest.Text{"en": "Wait, or raise concurrency, queue or rate of plugin.{plugin}, the quota in the policy, or memoryBudget.",
			"ja": "しばらく待つか、plugin.{plugin} の concurrency、queue、rate、ポリシーの quota、または memoryBudget を引き上げてください。"},
	},
	pipeline.Trap: {
		manifest.Text{"en": "The plugin broke within the call. Other calls are not affected.",
			"ja": "呼び出し中にプラグインが異常終了しました。他の呼び出しには影響しません。"},
		manifest.Text{"en": "hako's log has the reason; report it to the author of {plugin}.",
			"ja": "理由は hako のログにあります。{plugin} の作者に報告してください。"},
	},
	pipeline.Internal: {
		manifest.Text{"en": "hako itself failed.", "ja": "hako 自体のエラーです。"},
		manifest.Text{"en": "Its log has the details. Look first whether the audit log and the store can be written.",
			"ja": "詳細は hako のログにあります。まず監査ログとストアに書き込めるかを確認してください。"},
	},
}

// failureJSON is a failed call with advice.
type failureJSON struct {
	ID         uint64    `json:"id"`
	Time       time.Time `json:"time"`
	Tool       string    `json:"tool"`
	Plugin     string    `json:"plugin"`
	Frontend   string    `json:"frontend"`
	User       string    `json:"user"`
	Outcome    string    `json:"outcome"`
	Text       string    `json:"text"`
	Remedy     string    `json:"remedy"`
	DurationMS float64   `json:"durationMs"`
	Rule       string    `json:"rule,omitempty"`
	TraceID    string    `json:"traceId,omitempty"`
}

func (c *Console) failures(q *request) (any, error) {
	items := []failureJSON{}
	for _, e := range c.options.Traffic.failed() {
		a := advices[pipeline.Outcome(e.Outcome)]
		items = append(items, failureJSON{
			e.ID, e.Time, e.Tool, e.Plugin, e.Frontend, e.User, e.Outcome, e.fill(a.text.In(q.language)),
			e.fill(a.remedy.In(q.language)), e.DurationMS, e.Rule, e.TraceID,
		})
	}
	return listed(items), nil
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
		"{plugin}", named(e.Plugin, "NAME"), "{tool}", named(e.Tool, "TOOL"), "{user}", named(e.User, `""`),
		"{frontend}", e.Frontend, "{quota}", quota,
	).Replace(text)
}
