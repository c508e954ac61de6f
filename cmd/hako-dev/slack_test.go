package main

import (
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene plays lines in the fake Slack, and returns what people see.
func scene(t *testing.T, lines ...string) outcome {
	t.Helper()
	return invoke(t, strings.Join(lines, "\n"), "slack", "--hako", needsHako(t), "--play", "-")
}

// TestSceneOvertime: the whole way of a request that writes, as people see it: the real bot, engine and plugins on
// fakes. A policy asks before each step that writes; whoever may not answer is refused; the message reaches whom it
// is for.
func TestSceneOvertime(t *testing.T) {
	t.Parallel()
	files := filepath.Join("testdata", "slack")
	o := invoke(t, "", "slack", "--hako", needsHako(t), "--play", filepath.Join(files, "overtime.scene"))
	if o.code != exitOK || o.stderr != "" {
		t.Fatal(o)
	}
	path := filepath.Join(files, "overtime.txt")
	if *update {
		if err := os.WriteFile(path, []byte(o.stdout), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || o.stdout != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s (%v)", path, o.stdout, want, err)
	}
}

// TestAC12SceneWeather: a question in Slack is answered with the forecast, in the language of whoever asks; what needs
// no tool is answered without, and /hako answers to one person alone.
func TestAC12SceneWeather(t *testing.T) {
	t.Parallel()
	o := scene(t,
		"aki in #general: @hako 東京の天気を教えて", "aki in thread: @hako こんにちは", "aki to hako: 東京の天気を教えて",
		"aki in thread: ありがとう", "ken to hako: What is the weather in Osaka?",
		"aki to hako: 明日、高知で傘いる？", "ken to hako: Forecast for Matsue this week?", "ken in #general: /hako tools",
		"ken presses Good answer")
	o.want(t, exitOK, "[✓ 天気予報] 東京都（東京地方）の天気予報です。", "出典：気象庁ホームページ", "台本どおりに答える", "Weather forecast for Osaka", "高知県",
		"傘: ", "Matsue", "hako (to ken alone)\n    Tools that you may use:",
		"Thank you for the feedback.")
}

func TestSceneErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"what is this":               `line 1: "what is this" is neither "NAME in #CHANNEL: TEXT"`,
		"bob in #general: hi":        "line 1: nobody is called bob here",
		"ken in #nowhere: @hako hi":  "line 1: there is no in #nowhere",
		"# only this\nken presses X": `line 2: there is no button "X"`,
	} {
		scene(t, line).want(t, exitFailed, want)
	}
	invoke(t, "", "slack", "--hako", needsHako(t), "--play", "nothing.scene").want(t, exitUsage, "nothing.scene")
	invoke(t, "", "slack", "--address", "0.0.0.0:1").want(t, exitUsage, "can be reached from other machines")
}

// TestSlackPage: the page comes up with the bot connected, and goes when it is told to.
func TestSlackPage(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	screen, done := new(display), make(chan int, 1)
	a := &app{stdin: strings.NewReader(""), stdout: screen, stderr: screen, signals: signals, hako: needsHako(t)}
	go func() { done <- a.run(t.Context(), []string{"slack", "--hako", a.hako, "--address", "127.0.0.1:0"}) }()
	screen.see(t, "/?token=")
	at := strings.Fields(screen.String()[strings.Index(screen.String(), "http://"):])[0]
	response, err := http.Get(strings.SplitN(at, "?", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 401 || !strings.Contains(string(body), "hako-dev slack has printed") {
		t.Errorf("without the token: %d %s, %v", response.StatusCode, body, err)
	}
	signals <- os.Interrupt
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d: %s", code, screen)
	}
}

// TestSlackWithoutBot: when the bot does not start, its error and exit code are shown.
func TestSlackWithoutBot(t *testing.T) {
	t.Parallel()
	invoke(t, "", "slack", "--hako", needsHako(t), "--address", "127.0.0.1:0", "--", "--plugins", "nowhere").
		want(t, exitUsage, "nowhere does not exist")
}
