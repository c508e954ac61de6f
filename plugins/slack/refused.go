package main

import "strings"

// remedy describes how to mend an error, in two languages.
type remedy struct{ en, ja string }

// The remedies, by who can do it.
var (
	checkUser = &remedy{
		"check user_id: it must be an active member of this workspace, not a bot",
		"user_id を確かめてください。このワークスペースの有効なメンバーで、ボットではない必要があります",
	}
	badToken = &remedy{
		"ask the operator to check the bot token of this plugin's credential: it must start with xoxb- and belong to an installed app",
		"このプラグインの認証情報のボットトークンを確かめるよう、管理者に伝えてください。xoxb- で始まり、アプリがインストールされている必要があります",
	}
	addScopes = &remedy{
		"ask the operator to give the Slack app the bot scopes im:write, chat:write and users:read, and to install it again",
		"Slack アプリにボットのスコープ im:write、chat:write、users:read を加えて再インストールするよう、管理者に依頼してください",
	}
	notAllowed = &remedy{
		"the workspace does not allow it: ask its administrator",
		"ワークスペースの設定で許可されていません。ワークスペースの管理者に相談してください",
	}
	openAgain = &remedy{
		"the conversation cannot be written to: check user_id, and whether the app may still message this person",
		"この会話には書き込めません。user_id と、アプリがこの相手に送れるかどうかを確かめてください",
	}
	rewrite = &remedy{
		"change the message: it must have text, and no more than 4,000 characters",
		"メッセージを直してください。空ではなく、4,000 文字以内である必要があります",
	}
)

// remedies are the errors that Slack documents for the methods that are used.
var remedies = map[string]*remedy{
	"user_not_found": checkUser, "user_disabled": checkUser, "user_not_visible": checkUser, "is_bot": checkUser,
	"not_enough_users": checkUser, "users_list_not_supplied": checkUser, "too_many_users": checkUser,
	"cannot_dm_bot": checkUser,

	"channel_not_found": openAgain, "not_in_channel": openAgain, "is_archived": openAgain,
	"messages_tab_disabled":                 openAgain,
	"method_not_supported_for_channel_type": openAgain,

	"no_text": rewrite, "msg_too_long": rewrite, "msg_blocks_too_long": rewrite, "markdown_text_conflict": rewrite,

	"missing_scope": addScopes, "no_permission": addScopes,

	"invalid_auth": badToken, "not_authed": badToken, "token_revoked": badToken, "token_expired": badToken,
	"account_inactive": badToken, "not_allowed_token_type": badToken, "org_login_required": badToken,
	"ekm_access_denied": badToken,

	"access_denied": notAllowed, "enterprise_is_restricted": notAllowed, "team_access_not_granted": notAllowed,
	"team_added_to_org": notAllowed,
}

// passing are the errors after which Slack may have done its work nevertheless.
var passing = map[string]bool{
	"internal_error": true, "fatal_error": true, "service_unavailable": true, "request_timeout": true,
}

// refused explains an answer with ok false. A code that is not known is shown as it is.
func refused(method string, a *answer) error {
	code := shorten(a.Error)
	if a.Needed != "" {
		code += ", needed: " + shorten(a.Needed) + ", provided: " + shorten(a.Provided)
	}
	if len(a.Details.Messages) > 0 {
		code += ": " + shorten(a.Details.Messages[0])
	}
	if passing[a.Error] {
		return &uncertain{fail("Slack failed (%s: %s)", "Slack でエラーが起きました (%s: %s)", method, code)}
	}
	if a.Error == "message_limit_exceeded" {
		return fail("the workspace has sent too many messages (%s: %s). This one was not sent: try again later",
			"ワークスペースの送信数が上限に達しました (%s: %s)。このメッセージは送られていません。時間をおいて試してください", method, code)
	}
	do := remedies[a.Error]
	switch {
	case do == nil && strings.HasPrefix(a.Error, "restricted_action"):
		do = notAllowed
	case do == nil:
		return fail("Slack refused (%s: %s)", "Slack が受け付けませんでした (%s: %s)", method, code)
	}
	return fail("Slack refused (%[1]s: %[2]s): %[3]s", "Slack が受け付けませんでした (%[1]s: %[2]s)。%[4]s", method, code, do.en,
		do.ja)
}

// shorten keeps a text from outside to one line of a bearable length.
func shorten(text string) string {
	const longest = 300
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return string(runes)
}
