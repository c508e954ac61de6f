// Command shell is a plugin with one tool, which runs a command on the host's machine.
//
// What may run, where and for how long is the host's business: the operator's grant and rules, and the kernel. The
// plugin turns the tool's arguments into a command, reports on its output while it runs, and gives a model as much of
// it as it can use.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/locale"
	"github.com/hako-run/hako/pdk/pdkexec"
)

func init() { pdk.HandleTool("shell_exec", run) }

func main() {}

// input are the tool's arguments.
type input struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Cwd     string   `json:"cwd"`
}

// output is the tool's result, apart from the two texts.
type output struct {
	ExitCode  int      `json:"exitCode"`
	Signal    string   `json:"signal,omitempty"`
	TimedOut  bool     `json:"timedOut,omitempty"`
	Truncated []string `json:"truncated,omitempty"`
	Replaced  []string `json:"replaced,omitempty"`
	Unjudged  []string `json:"unjudged,omitempty"`
}

func run(ctx context.Context, in input) (*pdk.Result, error) {
	command, err := in.command(ctx)
	if err != nil {
		return nil, err
	}
	process, err := pdkexec.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	defer process.Close()
	texts := map[pdkexec.Stream]*excerpt{pdkexec.Stdout: {}, pdkexec.Stderr: {}}
	if err := follow(ctx, process, texts); err != nil {
		return nil, err
	}
	exit, err := process.Wait()
	if err != nil {
		return nil, err
	}
	return report(ctx, exit, texts[pdkexec.Stdout], texts[pdkexec.Stderr]), nil
}

// command returns the command of the arguments: a program with its arguments where there are some, else a line for a
// shell.
func (in input) command(ctx context.Context) (*pdkexec.Command, error) {
	text := strings.TrimSpace(in.Command)
	c := &pdkexec.Command{Dir: in.Cwd, Timeout: timeLeft(ctx)}
	switch {
	case text == "":
		return nil, errors.New(say(ctx, "command is empty: give a program or a line",
			"command が空です。プログラム名かコマンド行を指定してください"))
	case len(in.Args) == 0:
		c.Line = in.Command
	case strings.ContainsAny(text, " \t\n"):
		return nil, errors.New(say(ctx,
			"with args, command is the name of a program alone: put the rest of it into args, or write all of it into command and leave args out",
			"args を指定する場合、command はプログラム名だけにします。残りを args に入れるか、すべてを command に書いて args を省いてください"))
	default:
		c.Argv = append([]string{text}, in.Args...)
	}
	return c, nil
}

// reserve is the part of the call's time that is left for the answer after the command.
const reserve = time.Second

// timeLeft returns the time that a command may take, so that there is time left to report its end.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline)
	return max(left-reserve, left/2, time.Millisecond)
}

// reportEvery is the least time between two progress reports.
const reportEvery = 250 * time.Millisecond

// follow reads the command's output, and reports the latest line to the caller at intervals.
func follow(ctx context.Context, process *pdkexec.Process, texts map[pdkexec.Stream]*excerpt) error {
	buffer := make([]byte, 32<<10)
	var latest lastLine
	var reported time.Time
	total := 0
	for {
		stream, n, err := process.Read(buffer)
		switch {
		case isEnd(err):
			return nil
		case err != nil:
			return err
		}
		texts[stream].add(buffer[:n])
		latest.add(buffer[:n])
		total += n
		if now := time.Now(); now.Sub(reported) >= reportEvery {
			reported = now
			pdk.Progress(ctx, float64(total), 0, latest.String())
		}
	}
}

// report is the result for the caller: the texts for programs, and one text for models.
func report(ctx context.Context, exit *pdkexec.Exit, stdout, stderr *excerpt) *pdk.Result {
	out := output{ExitCode: exit.Code, Signal: exit.Signal, TimedOut: exit.Stopped == abi.StoppedTime,
		Unjudged: exit.Unjudged}
	texts := [2]string{}
	for i, e := range []*excerpt{stdout, stderr} {
		name := [2]string{"stdout", "stderr"}[i]
		text, replaced := e.text(ctx)
		if texts[i] = text; replaced {
			out.Replaced = append(out.Replaced, name)
		}
		if e.cut() > 0 || contains(exit.Cut, pdkexec.Stream(i+1)) {
			out.Truncated = append(out.Truncated, name)
		}
	}
	return pdk.Text(summary(ctx, exit, texts[0], texts[1])).WithStructured(out).
		WithStructuredText("stdout", []byte(texts[0])).WithStructuredText("stderr", []byte(texts[1]))
}

func contains(list []pdkexec.Stream, stream pdkexec.Stream) bool {
	for _, s := range list {
		if s == stream {
			return true
		}
	}
	return false
}

// summary is the result as one text.
func summary(ctx context.Context, exit *pdkexec.Exit, stdout, stderr string) string {
	var b strings.Builder
	b.WriteString(stdout)
	if stderr != "" {
		newLine(&b)
		b.WriteString("[stderr]\n" + stderr)
	}
	ending := ""
	switch {
	case exit.Stopped == abi.StoppedTime:
		ending = say(ctx, "ended by hako: its time was up", "hako が終了させました: 制限時間を過ぎました")
	case exit.Stopped == abi.StoppedOutput:
		ending = say(ctx, "ended by hako: its output is too large", "hako が終了させました: 出力が多すぎます")
	case exit.Signal != "":
		ending = say(ctx, "ended by a signal: %s", "シグナルで終了しました: %s", exit.Signal)
	case exit.Code != 0:
		ending = say(ctx, "exit code %d", "終了コード %d", exit.Code)
	case b.Len() == 0:
		ending = say(ctx, "exit code 0, no output", "終了コード 0、出力なし")
	}
	if ending != "" {
		newLine(&b)
		b.WriteString("[" + ending + "]")
	}
	if len(exit.Unjudged) > 0 {
		newLine(&b)
		b.WriteString("[" + say(ctx, "hako does not know %s: no rule looked at what it did, the sandbox alone held it",
			"hako は %s を知りません。どのルールもその動作を見ておらず、サンドボックスだけが制限しました", strings.Join(exit.Unjudged, ", ")) + "]")
	}
	return b.String()
}

// newLine starts a new line.
func newLine(b *strings.Builder) {
	if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

// say formats a text in the caller's language; both formats get the same arguments.
func say(ctx context.Context, en, ja string, args ...any) string {
	return fmt.Sprintf(locale.Text{"en": en, "ja": ja}.In(pdk.Locale(ctx)), args...)
}
