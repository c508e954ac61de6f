package main

import "testing"

func TestAgent(t *testing.T) {
	t.Parallel()
	hako := needsHako(t)
	invoke(t, "", "agent", "--hako", hako, "東京の天気は？").want(t, exitOK, "agent_stand_in now has version 2", "+ get_weather",
		`calls:   get_weather {"lang":"ja","location":"東京"}`, "result:  東京都", "agent:   東京都", "気象庁")
	// The policy asks before something is written, and nobody is there.
	invoke(t, "", "agent", "--hako", hako, "Put the overtime of May into the sheet").want(t, exitOK,
		"failed:  write_rows_to_google_sheet is not allowed", "I stopped there")
	invoke(t, "", "agent", "--hako", hako, "x", "--", "--tenant", "nobody").want(t, exitUsage, "unknown flag: --tenant")
}
