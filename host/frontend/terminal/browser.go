package terminal

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"runtime"
)

// openBrowser opens a page in the user's browser.
func openBrowser(url string) error {
	switch runtime.GOOS {
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", url).Start()
	case "darwin":
		return exec.Command("open", url).Start()
	}
	return exec.Command("xdg-open", url).Start()
}

// ReadLine reads one line, until ctx ends.
func (t IO) ReadLine(ctx context.Context) (string, error) {
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() { // ends with the process: nothing interrupts a read
		text, err := bufio.NewReader(t.In).ReadString('\n')
		read <- result{text, err}
	}()
	select {
	case r := <-read:
		if r.text != "" {
			return r.text, nil
		}
		return "", fmt.Errorf("nothing was pasted: %w", r.err)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
