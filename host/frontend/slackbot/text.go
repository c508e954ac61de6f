package slackbot

import "github.com/hako-run/hako/internal/lang"

// words are the bot's own texts in one language.
type words struct {
	stopped, stoppedBy, restarted, lost, failed, forbidden, stranger, unknownHome, empty string

	files, fileTooLarge, fileFailed, longer, below string

	stop, approve, deny, good, bad, thanks, noAnswer string

	waits, approved, denied, expired, withdrawn, until, waitsFor string

	operation, exact, exactCut, mayNot, may, noQuestion string

	waitsAnswer, answer, decline, openPage, opened, answered, declined, pressAgain, send, close, yes, no string

	tools, moreTools, noTools, running, idle, stopping, nothingToStop, noUsage, help string
}

var (
	english = words{
		stopped:   "Stopped.",
		stoppedBy: "Stopped by <@%s>.",
		restarted: "hako is shutting down, so this answer ends here. What was already done stays done. Ask again in a moment.",
		lost:      "hako was interrupted in the middle of this answer, and it ends here. What was already done stays done. Ask again to go on.",
		failed:    "An error occurred, and there is no answer. hako's log has the details.",
		forbidden: "You may not use this bot here. Ask whoever runs it to add you.",
		stranger: "People of your workspace (%s) may not use this bot. Whoever runs it can allow them, with a tenant of their own: " +
			"`slack.workspaces[].partners` in its configuration.",
		unknownHome: "This bot could not determine your workspace, so you may not use it. Try again in a moment. " +
			"If this continues, its operator should give its app the scope `users:read`.",
		empty: "(The model gave no answer.)",

		fileTooLarge: "%s was left out: it is larger than %d MB.",
		fileFailed:   "%s was left out: it could not be downloaded.",
		longer:       "… The whole answer is in the file below.",
		below:        "continued below",

		stop: "Stop", approve: "Approve", deny: "Deny", good: "Good answer", bad: "Bad answer",
		waits:      "waits for approval",
		approved:   ":white_check_mark: Approved by <@%s>, %s",
		denied:     ":no_entry: Denied by <@%s>, %s",
		expired:    ":hourglass: Nobody answered in time.",
		withdrawn:  ":heavy_minus_sign: No longer needed: the request was stopped.",
		until:      "Waits until %s.",
		waitsFor:   "Waits for %s until %s.",
		operation:  "It would run",
		exact:      "Exact arguments",
		exactCut:   ":warning: These are the first %d of %d characters. `hako approvals list --json` and the console show everything.",
		mayNot:     "You may not answer this question.",
		may:        "It may be answered by: %s",
		noQuestion: "This question is no longer open.",

		waitsAnswer: "waits for your answer", answer: "Answer", decline: "Decline", openPage: "Open %s",
		opened:   "I have been there",
		answered: ":white_check_mark: Answered by <@%s>, %s", declined: ":no_entry: Declined by <@%s>, %s",
		pressAgain: "That took too long, and Slack did not open the form. Please press the button again.",
		send:       "Send", close: "Later", yes: "Yes", no: "No",

		tools: "Tools that you may use:", moreTools: "… and %d more", noTools: "There is no tool that you may use.",
		running: "Answers that are being written here: %d.", idle: "Nothing is being written here.",
		stopping: "Stopping %d.", nothingToStop: "There is nothing to stop here.",
		noUsage: "Usage is not recorded here.",
		help:    "`%s tools` lists the tools that you may use, `%s status` what runs in this channel, `%s stop` stops it, `%s usage` shows what you have used.",
		thanks:  "Thank you for the feedback.", noAnswer: "This answer is not kept any more.",
		files: "What was said in the thread before, as data:",
	}
	japanese = words{
		stopped:   "停止しました。",
		stoppedBy: "<@%s> さんが停止しました。",
		restarted: "hako を停止するため、回答はここで終わります。すでに実行された操作は取り消されません。少し待ってからもう一度お尋ねください。",
		lost:      "回答の途中で hako が中断されたため、回答はここで終わります。すでに実行された操作は取り消されません。続けるにはもう一度お尋ねください。",
		failed:    "エラーが発生し、回答できませんでした。詳細は hako のログにあります。",
		forbidden: "ここでこのボットを使う権限がありません。管理者に追加を依頼してください。",
		stranger: "あなたのワークスペース（%s）のメンバーはこのボットを使えません。" +
			"管理者が設定の `slack.workspaces[].partners` に専用のテナントとともに追加すると使えるようになります。",
		unknownHome: "あなたの所属するワークスペースを確認できないため、このボットは使えません。少し待ってからもう一度お試しください。" +
			"続く場合は、アプリに `users:read` スコープを付与するよう管理者に依頼してください。",
		empty: "（モデルから回答がありませんでした。）",

		fileTooLarge: "%s は %d MB を超えているため、読み込めませんでした。",
		fileFailed:   "%s はダウンロードできなかったため、読み込めませんでした。",
		longer:       "… 全文は下のファイルにあります。",
		below:        "下に続きます",

		stop: "停止", approve: "許可", deny: "拒否", good: "よい回答", bad: "よくない回答",
		waits:      "承認待ち",
		approved:   ":white_check_mark: <@%s> さんが許可しました（%s）",
		denied:     ":no_entry: <@%s> さんが拒否しました（%s）",
		expired:    ":hourglass: 時間内に回答がありませんでした。",
		withdrawn:  ":heavy_minus_sign: 依頼が停止されたため、回答は不要になりました。",
		until:      "%s まで待ちます。",
		waitsFor:   "%s の回答を %s まで待ちます。",
		operation:  "実行内容",
		exact:      "引数そのもの",
		exactCut:   ":warning: 先頭の %d 文字です（全 %d 文字）。全体は `hako approvals list --json` かコンソールで確認できます。",
		mayNot:     "この質問に回答する権限がありません。",
		may:        "回答できる人: %s",
		noQuestion: "この質問はすでに終了しています。",

		waitsAnswer: "回答待ち", answer: "回答する", decline: "断る", openPage: "%s を開く", opened: "開きました",
		answered: ":white_check_mark: <@%s> さんが回答しました（%s）", declined: ":no_entry: <@%s> さんが断りました（%s）",
		pressAgain: "時間がかかったため、Slack がフォームを開けませんでした。もう一度ボタンを押してください。",
		send:       "送信", close: "あとで", yes: "はい", no: "いいえ",

		tools: "使えるツール:", moreTools: "… ほか %d 件", noTools: "使えるツールはありません。",
		running: "ここで作成中の回答: %d 件。", idle: "ここで作成中の回答はありません。",
		stopping: "%d 件を停止します。", nothingToStop: "ここで停止するものはありません。",
		noUsage: "使用量は記録されていません。",
		help:    "`%s tools` 使えるツールの一覧、`%s status` このチャンネルで実行中のもの、`%s stop` その停止、`%s usage` 使用量。",
		thanks:  "フィードバックをありがとうございます。", noAnswer: "この回答はすでに削除されています。",
		files: "スレッドのこれまでの発言（データ）:",
	}
)

// wordsFor returns the words for a BCP 47 tag: Japanese, else English.
func wordsFor(locale string) *words {
	if lang.Japanese(locale) {
		return &japanese
	}
	return &english
}
