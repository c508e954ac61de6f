package chat

import (
	"fmt"
	"time"

	"github.com/hako-run/hako/host/frontend/llm"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/internal/lang"
)

// words has the texts of one language.
type words struct {
	language    string
	interrupted string
	stopped     string
	wasCut      string
	waiting     string
	shortened   string
	again       string // %s: how long, %s: which model
	instead     string // %s: which model
	rounds      string // for the model
	repeated    string // for the model
	limit       string
	cut         string
	refused     string
	filtered    string
	nothing     string
	line        string
	long        string
	empty       string
	notYours    string
	internal    string
	kinds       map[llm.Kind]string
	later       string // %s: how long
	outcomes    map[pipeline.Outcome]string
	budgets     [3]string // %s: how much, %s: when
	starts      string
	tokens      string
}

var english = &words{
	language:    "English",
	interrupted: "(The answer was interrupted because hako stopped. Please ask again.)",
	stopped:     "(Stopped.)",
	wasCut:      "The answer before this one was interrupted.",
	waiting:     "Waiting for the answer before this one.",
	shortened:   "The older part of this conversation was summarised.",
	again:       "No answer at the moment. Trying again in %s (model %s).",
	instead:     "No answer from this model. Asking %s instead.",
	rounds:      "The limit of tool calls is reached. Answer now with what you have, and say what is missing.",
	repeated:    "You repeat the same tool call. No more tools can be called. Answer now with what you have, and say what is missing.",
	limit:       "The limit of tool calls is reached: the answer uses what is known so far.",
	cut:         "The answer reached its greatest length and is cut off. Ask to go on.",
	refused:     "The model does not want to answer this.",
	filtered:    "The provider's content filter stopped the answer.",
	nothing:     "(The model gave no answer.)",
	line:        "Several messages of this conversation wait for an answer already. Please try again in a moment.",
	long:        "The message is too long. Please shorten it, or send it as a file.",
	empty:       "The message is empty.",
	notYours:    "This conversation belongs to somebody else.",
	internal:    "hako had an internal error. Its log has the details.",
	kinds: map[llm.Kind]string{
		llm.RateLimited:   "The model gets too many requests at the moment. Please try again later.",
		llm.Overloaded:    "The model is overloaded at the moment. Please try again later.",
		llm.ContextWindow: "The conversation is too long for the model. Please begin a new one.",
		llm.Auth:          "The model cannot be used: its key is missing or was refused. Please tell whoever runs hako.",
		llm.Invalid:       "The model did not accept the request. Please tell whoever runs hako.",
		llm.Refused:       "The model does not want to answer this conversation.",
		llm.Unavailable:   "The model could not be reached, or its answer broke off. Please try again.",
	},
	later: "Please try again in %s.",
	outcomes: map[pipeline.Outcome]string{
		pipeline.ToolError: "failed", pipeline.InvalidArguments: "wrong arguments", pipeline.InvalidResult: "failed",
		pipeline.NotFound:   "no such tool",
		pipeline.NotAllowed: "not allowed", pipeline.Asked: "not allowed", pipeline.Timeout: "took too long",
		pipeline.CPU:    "took too long",
		pipeline.Memory: "failed", pipeline.Size: "too large", pipeline.Busy: "busy", pipeline.Trap: "failed",
		pipeline.Canceled: "stopped", pipeline.Stopped: "stopped",
		pipeline.Internal: "failed",
	},
	budgets: [3]string{
		"The budget of this conversation (%s) is used up. %s",
		"Your budget for today (%s) is used up. %s",
		"Today's budget for everybody (%s) is used up. %s",
	},
	starts: "Begin a new conversation to go on.",
	tokens: "%d tokens",
}

var japanese = &words{
	language:    "Japanese",
	interrupted: "(hako が停止したため、回答が中断されました。もう一度質問してください。)",
	stopped:     "(停止しました。)",
	wasCut:      "前回の回答は中断されました。",
	waiting:     "前の質問への回答を待っています。",
	shortened:   "この会話の古い部分を要約しました。",
	again:       "現在モデルから応答がありません。%s後にもう一度試します（モデル %s）。",
	instead:     "モデルから応答がないため、代わりに %s に問い合わせます。",
	rounds:      "ツール呼び出しの上限に達しました。現在の情報で回答し、足りない情報があればそう伝えてください。",
	repeated:    "同じツール呼び出しが繰り返されています。これ以上ツールは使えません。現在の情報で回答し、足りない情報があればそう伝えてください。",
	limit:       "ツール呼び出しの上限に達したため、これまでの情報で回答します。",
	cut:         "回答が最大の長さに達したため、途中で切れています。続きを求めてください。",
	refused:     "モデルがこの質問への回答を拒否しました。",
	filtered:    "プロバイダーのコンテンツフィルターが回答を止めました。",
	nothing:     "(モデルから回答がありませんでした。)",
	line:        "この会話では複数のメッセージが回答を待っています。少し待ってからもう一度お試しください。",
	long:        "メッセージが長すぎます。短くするか、ファイルとして送ってください。",
	empty:       "メッセージが空です。",
	notYours:    "この会話は別の人のものです。",
	internal:    "hako の内部でエラーが発生しました。詳しくは hako のログを確認してください。",
	kinds: map[llm.Kind]string{
		llm.RateLimited:   "現在モデルへのリクエストが多すぎます。しばらくしてからもう一度お試しください。",
		llm.Overloaded:    "現在モデルが混み合っています。しばらくしてからもう一度お試しください。",
		llm.ContextWindow: "会話がモデルにとって長すぎます。新しい会話を始めてください。",
		llm.Auth:          "モデルを利用できません。キーがないか、拒否されました。hako の管理者に連絡してください。",
		llm.Invalid:       "モデルがリクエストを受け付けませんでした。hako の管理者に連絡してください。",
		llm.Refused:       "モデルがこの会話への回答を拒否しました。",
		llm.Unavailable:   "モデルに接続できないか、回答が途中で切れました。もう一度お試しください。",
	},
	later: "%s後にもう一度お試しください。",
	outcomes: map[pipeline.Outcome]string{
		pipeline.ToolError: "失敗", pipeline.InvalidArguments: "引数が不正", pipeline.InvalidResult: "失敗",
		pipeline.NotFound:   "ツールが存在しません",
		pipeline.NotAllowed: "許可されていません", pipeline.Asked: "許可されていません", pipeline.Timeout: "時間切れ", pipeline.CPU: "時間切れ",
		pipeline.Memory: "失敗", pipeline.Size: "大きすぎます", pipeline.Busy: "混雑中", pipeline.Trap: "失敗",
		pipeline.Canceled: "停止", pipeline.Stopped: "停止",
		pipeline.Internal: "失敗",
	},
	budgets: [3]string{
		"この会話の予算（%s）を使い切りました。%s",
		"あなたの本日の予算（%s）を使い切りました。%s",
		"全体の本日の予算（%s）を使い切りました。%s",
	},
	starts: "続けるには新しい会話を始めてください。",
	tokens: "%d トークン",
}

// wordsFor returns the texts for a BCP 47 tag: Japanese, else English.
func wordsFor(locale string) *words {
	if lang.Japanese(locale) {
		return japanese
	}
	return english
}

// model returns the text for a model's error.
func (w *words) model(err *llm.Error) string {
	text, ok := w.kinds[err.Kind]
	if !ok {
		return w.internal
	}
	if err.RetryAfter > 0 && (err.Kind == llm.RateLimited || err.Kind == llm.Overloaded) {
		text += " " + fmt.Sprintf(w.later, w.span(err.RetryAfter))
	}
	return text
}

// retry returns the text for a request that is sent again.
func (w *words) retry(r llm.Retry) string {
	if r.Pause == 0 {
		return fmt.Sprintf(w.instead, r.Model)
	}
	return fmt.Sprintf(w.again, w.span(r.Pause), r.Model)
}

// span formats a waiting time, rounded up.
func (w *words) span(d time.Duration) string {
	n, units := int((d+time.Second-1)/time.Second), [2]string{"%d s", "%d 秒"}
	if n > 90 {
		n, units = (n+59)/60, [2]string{"%d min", "%d 分"}
	}
	if w == japanese {
		return fmt.Sprintf(units[1], n)
	}
	return fmt.Sprintf(units[0], n)
}

// reset returns the text about when a daily budget is reset.
func (w *words) reset(at time.Time) string {
	if w == japanese {
		return fmt.Sprintf("%s にリセットされます。", at.Format("1月2日 15:04 (MST)"))
	}
	return fmt.Sprintf("It resets on %s.", at.Format("January 2 at 15:04 (MST)"))
}
