package terminal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/hako-run/hako/host/credential"
)

// consentTime bounds the wait of Connect for the operator.
const consentTime = 10 * time.Minute

// Consenter asks the operator to consent at a credential's provider.
type Consenter struct {
	// IO is the terminal. Err gets the instructions.
	IO
	// Browse opens a page. Nil means the user's browser.
	Browse func(url string) error
}

// Consenting describes how the operator consents. The zero value is a browser on this machine.
type Consenting struct {
	// NoBrowser takes the code from the terminal, Device shows a code for another device.
	NoBrowser, Device bool
}

// Connect connects a credential for a tenant. It waits for the operator for at most 10 minutes.
func (c *Consenter) Connect(ctx context.Context, b *credential.Broker, tenant, name string,
	how Consenting) (status *credential.Status, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, consentTime,
		errors.New("the consent was not given in time: run the command again"))
	defer cancel()
	switch {
	case how.Device || b.OnlyDevice(tenant, name):
		status, err = b.ConnectDevice(ctx, tenant, name, c.showDeviceCode)
	case how.NoBrowser:
		status, err = c.connectByPasting(ctx, b, tenant, name)
	default:
		status, err = b.Connect(ctx, tenant, name, c.openPage)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = cmp.Or(context.Cause(ctx), err)
	}
	return status, err
}

func (c *Consenter) showDeviceCode(code credential.DeviceCode) {
	Printf(c.Err, "Open %s on any device and enter the code\n\n  %s\n\nbefore %s. Waiting ...\n",
		code.URL, code.UserCode, code.Expires.Format(time.TimeOnly))
	if code.CompleteURL != "" {
		Printf(c.Err, "Or open %s\n", code.CompleteURL)
	}
}

func (c *Consenter) openPage(url string) {
	Printf(c.Err, "Give your consent on this page:\n\n  %s\n\n", url)
	browse := c.Browse
	if browse == nil {
		browse = openBrowser
	}
	if err := browse(url); err != nil {
		Printf(c.Err, "No browser could be opened (%v): open the page yourself on this machine, or use --no-browser.\n",
			err)
	}
	Printf(c.Err, "Waiting ...\n")
}

// connectByPasting takes the code from the terminal.
func (c *Consenter) connectByPasting(ctx context.Context, b *credential.Broker, tenant,
	name string) (*credential.Status, error) {
	consent, err := b.Consent(ctx, tenant, name, "")
	if err != nil {
		return nil, err
	}
	Printf(c.Err, "Give your consent on this page, in any browser:\n\n  %s\n\n"+
		"Then paste the code that it shows, or the address of the page that you are sent to: ", consent.URL)
	pasted, err := c.ReadLine(ctx)
	if err != nil {
		return nil, err
	}
	return consent.Exchange(ctx, pasted)
}
