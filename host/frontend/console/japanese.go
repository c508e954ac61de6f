package console

import "fmt"

// japanese returns the Japanese text of an English format, or "" if it has none.
func japanese(format string, args ...any) string {
	if translated, ok := japaneseFormats[format]; ok {
		return fmt.Sprintf(translated, args...)
	}
	return ""
}

// japaneseFormats are the Japanese texts of the formats of faults. Their verbs have the same order, or say which.
var japaneseFormats = map[string]string{
	"the file is larger than %d bytes":                                                           "ファイルが %d バイトを超えています",
	"raise maxPluginSize in hako.yaml if that is right":                                          "問題がなければ hako.yaml の maxPluginSize を引き上げてください",
	"the upload failed: %v":                                                                      "ファイルを受信できませんでした: %v",
	"the address is not an https URL, such as https://example.com/weather.wasm":                  "https で始まる URL を指定してください (例: https://example.com/weather.wasm)",
	"the digest of the plugin that was shown is missing":                                         "表示したプラグインのダイジェストがありません",
	"there is no policy file: proposals are saved next to it":                                    "ポリシーのファイルがないため、提案を保存できません",
	"there is no rule of the scope %q for this call":                                             "この呼び出しには範囲 %q のルールがありません",
	`the answer is "yes" or "no"`:                                                                `回答は "yes" または "no" です`,
	"the reason is longer than %d bytes":                                                         "理由が %d バイトを超えています",
	"there is no file for consents: set consents in hako.yaml":                                   "承認を保存するファイルがありません。hako.yaml の consents を設定してください",
	"the plugin cannot be approved: it is %s: %s":                                                "このプラグインは承認できません (状態: %s): %s",
	"%s is not in the folder that plugins are added to":                                          "%s は、プラグインを追加するフォルダーにありません",
	"text is longer than %d bytes":                                                               "検索する文字列が %d バイトを超えています",
	"%s is a time such as 2026-01-31T15:04:05Z":                                                  "%s には 2026-01-31T15:04:05Z のような日時を指定してください",
	"the cursor is not from this list":                                                           "cursor がこの一覧のものではありません",
	"format must be jsonl or csv":                                                                "format には jsonl か csv を指定してください",
	"correct it (hako config check) and reload again; the previous configuration stays in force": "設定を直して (hako config check で確認できます) もう一度読み込んでください。それまでは以前の設定が有効です",
	"the request is larger than %d bytes":                                                        "リクエストが %d バイトを超えています",
	"the request was canceled":                                                                   "リクエストは取り消されました",
	"the Content-Type must be %s":                                                                "Content-Type は %s でなければなりません",
	"limit must be a number from 1 to %d":                                                        "limit には 1 から %d までの数を指定してください",
	"a login needs a token or a link":                                                            "ログインにはトークンかリンクが必要です",
	"%q is not a state of a plugin":                                                              "%q というプラグインの状態はありません",
	"the arguments of a tool must be a JSON object":                                              "ツールの引数は JSON オブジェクトで指定してください",
	"hours must be a number from 1 to %d":                                                        "hours には 1 から %d までの数を指定してください",
	"the query is longer than %d bytes":                                                          "クエリが %d バイトを超えています",
	"unknown parameter %q":                                                                       "パラメーター %q はありません",
	"the parameter %q occurs %d times":                                                           "パラメーター %q が %d 回指定されています",
	"the parameter %q is not valid text":                                                         "パラメーター %q は正しいテキストではありません",
	"the request body is invalid: %v":                                                            "リクエストの本文が正しくありません: %v",
	"span must be hour, day or week":                                                             "span には hour、day、week のいずれかを指定してください",
	"unknown role %q: use viewer, approver or admin":                                             "役割 %q はありません。viewer、approver、admin のいずれかを指定してください",
	"%q cannot be the name of a user":                                                            "%q はユーザー名として使えません",
	"no issuer is configured (http.auth, console.oidc)":                                          "発行者が設定されていません (http.auth、console.oidc)",
	"by must be calls, failures or p95":                                                          "by には calls、failures、p95 のいずれかを指定してください",

	"the toolset is not valid in hako.yaml":                      "このツールセットは hako.yaml に書けません",
	"the rules are not valid in hako.yaml":                       "これらのルールは hako.yaml に書けません",
	"there is no rule":                                           "ルールがありません",
	"name at least one tool; * is all":                           "ツールを 1 つ以上指定してください (* はすべて)",
	"a draft has at most %d entries":                             "下書きの項目は %d 件までです",
	"%s is longer than %d bytes":                                 "%s が %d バイトを超えています",
	"the value of %s nests deeper than %d, or is not valid text": "%s の値の入れ子が %d 段を超えているか、正しいテキストではありません",

	"there is no toolset %q":                "ツールセット %q はありません",
	"there is no plugin folder %q":          "プラグインのフォルダー %q はありません",
	"there is no issuer %q":                 "発行者 %q は設定されていません",
	"there is no index %q":                  "インデックス %q はありません",
	"there is no question %q":               "質問 %q はありません",
	"there is no consent for the plugin %q": "プラグイン %q の承認はありません",
	"there is no session %q":                "セッション %q はありません",
	"there is no identity provider %q":      "ID プロバイダー %q はありません",
	"there is no plugin %q":                 "プラグイン %q はありません",
	"there is no tool %q":                   "ツール %q はありません",
	"there is no address %q":                "アドレス %q はありません",
}
