package main

import "testing"

// TestChat: a newcomer sees the whole way without any account.
func TestChat(t *testing.T) {
	t.Parallel()
	hako := needsHako(t)
	invoke(t, "weather in Osaka?", "chat", "--hako", hako).want(t, exitOK, "Weather forecast for Osaka")
	invoke(t, "明日、高松で傘は要りますか？", "chat", "--hako", hako).want(t, exitOK, "香川県", "傘", "高松地方気象台")
	// Flags and exit codes are hako's.
	invoke(t, "", "chat", "--hako", hako, "--", "--locale", "ja").want(t, exitFailed, "メッセージが空です")
	invoke(t, "x", "chat", "--hako", hako, "--", "--model", "third").want(t, exitUsage, "anthropic, openai, local")
}
