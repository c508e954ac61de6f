package judge

import "github.com/hako-run/hako/pdk/locale"

// Explain returns the reason of a verdict for the people who are asked: those of the default rules in Japanese too. The
// reasons of an operator's own rules are in the operator's language.
func Explain(reason string) locale.Text {
	if reason == "" {
		return nil
	}
	text := locale.Text{"en": reason}
	if japanese, ok := japaneseReasons[reason]; ok {
		text["ja"] = japanese
	}
	return text
}

// japaneseReasons are the reasons of the default rules that ask, and of RuleOpaque.
var japaneseReasons = map[string]string{
	openLine:                               "コマンドラインが変数、コマンド、ファイルに依存し、hako 自身のシェルでは解釈されません",
	unknownScript:                          "スクリプトの内容を事前に確認できません",
	"runs with the rights of another user": "別のユーザーの権限で実行します",
	"installs or removes software":         "ソフトウェアをインストールまたは削除します",
	"installs software, which may run code of its own":                   "ソフトウェアをインストールします。その際に任意のコードが実行されることがあります",
	"fetches and runs code":                                              "コードを取得して実行します",
	"deletes a whole tree":                                               "ディレクトリを中身ごと削除します",
	"changes users, services or what runs later":                         "ユーザー、サービス、または後で実行される処理を変更します",
	"changes permissions of files":                                       "ファイルの権限を変更します",
	"ends other processes":                                               "ほかのプロセスを終了します",
	"reaches beyond the sandbox: other machines, containers or accounts": "サンドボックスの外（ほかのマシン、コンテナー、アカウント）に影響します",
	"runs code that rules cannot see":                                    "ルールで確認できないコードを実行します",
	"can start other programs while it runs":                             "実行中にほかのプログラムを起動できます",
	"can load code or start other programs, through options and files that rules cannot see": "ルールで確認できないオプションやファイルを通じて、" +
		"コードの読み込みやほかのプログラムの起動ができます",
}
