package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
)

// scene plays lines in the fake Slack, and returns what people see.
func scene(t *testing.T, dir string, lines ...string) outcome {
	t.Helper()
	needsPlugins(t)
	return invokeWith(t, dir, strings.Join(lines, "\n"), "dev", "slack", "--play", "-")
}

// TestSceneOvertime: the whole way of a request that writes, as people see it: the real bot, engine and plugins on
// fakes. A policy asks before each step that writes; whoever may not answer is refused; the message reaches whom it
// is for.
func TestSceneOvertime(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	path := must(filepath.Abs(filepath.Join("testdata", "slack", "overtime.scene")))
	o := invoke(t, t.TempDir(), "dev", "slack", "--play", path)
	if o.code != exitOK {
		t.Fatal(o)
	}
	golden(t, filepath.Join("slack", "overtime.txt"), o.stdout)
}

// TestAC12SceneWeather: a question in Slack is answered with the forecast, in the language of whoever asks; what needs
// no tool is answered without, and /hako answers to one person alone.
func TestAC12SceneWeather(t *testing.T) {
	t.Parallel()
	o := scene(t, t.TempDir(),
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
	dir := t.TempDir()
	for line, want := range map[string]string{
		"what is this":               `line 1: "what is this" is neither "NAME in #CHANNEL: TEXT"`,
		"bob in #general: hi":        "line 1: nobody is called bob here",
		"ken in #nowhere: @hako hi":  "line 1: there is no in #nowhere",
		"# only this\nken presses X": `line 2: there is no button "X"`,
	} {
		scene(t, dir, line).want(t, exitFailed, want)
	}
	invoke(t, dir, "dev", "slack", "--play", "nothing.scene").want(t, exitUsage, "nothing.scene")
	invoke(t, dir, "dev", "slack", "--address", "0.0.0.0:1").want(t, exitUsage, "can be reached from other machines")
}

// TestDevSlackPage: the page comes up with the bot connected, and goes when it is told to.
func TestDevSlackPage(t *testing.T) {
	t.Parallel()
	needsPlugins(t)
	ctx, cancel := context.WithCancel(t.Context())
	a := &app{stdin: strings.NewReader(""), stdout: &display{}, stderr: &display{}}
	screen := a.stderr.(*display)
	done := make(chan int, 1)
	go func() {
		done <- a.run(ctx, []string{"--directory", t.TempDir(), "dev", "slack", "--address", "127.0.0.1:0"})
	}()
	select {
	case <-screen.await("/?token="):
	case code := <-done:
		t.Fatalf("exit code %d: %s", code, screen)
	case <-testwait.Context(t).Done():
		t.Fatalf("no page: %s", screen)
	}
	at := strings.Fields(screen.String()[strings.Index(screen.String(), "http://"):])[0]
	if status, body := get(t, strings.SplitN(at, "?", 2)[0], nil); status != 401 ||
		!strings.Contains(body, "hako dev slack has printed") {
		t.Errorf("without the token: %d %s", status, body)
	}
	cancel()
	if code := <-done; code != exitOK && code != exitInterrupted {
		t.Errorf("exit code %d: %s", code, screen)
	}
}
