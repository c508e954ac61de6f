package credential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/strictjson"
)

// DeviceCode is the code that the operator enters on another device (RFC 8628, section 3.2).
type DeviceCode struct {
	UserCode string
	// URL is the page for entering the code. CompleteURL, if not empty, already contains the code.
	URL, CompleteURL string
	// Expires is the expiry of the code.
	Expires time.Time
}

// deviceReply is the authorization server's response.
type deviceReply struct {
	DeviceCode      string   `json:"device_code"`
	UserCode        string   `json:"user_code"`
	VerificationURI string   `json:"verification_uri"`
	VerificationURL string   `json:"verification_url"` // used by some servers instead
	Complete        string   `json:"verification_uri_complete"`
	ExpiresIn       flexible `json:"expires_in"`
	Interval        flexible `json:"interval"`
}

// ConnectDevice connects a credential with consent on another device. It calls show with the code to enter there, and
// polls the authorization server for the result. Errors are those of the server, the store or ctx, or that the code has
// expired.
func (b *Broker) ConnectDevice(ctx context.Context, tenant, name string, show func(DeviceCode)) (*Status, error) {
	c, err := b.connection(tenant, name)
	if err != nil {
		return nil, err
	}
	if c.spec.DeviceURL == "" {
		return nil, fmt.Errorf("the credential %s has no deviceUrl: connect it in a browser", c.id)
	}
	if _, err := b.vault.ready(ctx); err != nil {
		return nil, err // before the operator is asked
	}
	device, err := c.startDevice(ctx)
	if err != nil {
		return nil, err
	}
	expires := time.Now().Add(time.Duration(cmp.Or(min(device.ExpiresIn, 1<<20), 600)) * time.Second)
	show(DeviceCode{UserCode: device.UserCode, URL: cmp.Or(device.VerificationURI, device.VerificationURL),
		CompleteURL: device.Complete, Expires: expires})
	ctx, cancel := context.WithDeadlineCause(ctx, expires, errors.New("the code has expired: start again"))
	defer cancel()
	return c.pollDevice(ctx, device)
}

// startDevice requests a code (RFC 8628, section 3.1).
func (c *connection) startDevice(ctx context.Context) (*deviceReply, error) {
	form, err := c.client(ctx, c.party())
	if err != nil {
		return nil, err
	}
	if len(c.spec.Scopes) > 0 {
		form.Set("scope", strings.Join(c.spec.Scopes, " "))
	}
	answer, err := c.broker.post(ctx, c.spec.DeviceURL, form)
	if err != nil {
		return nil, err
	}
	reply := new(deviceReply)
	if err := strictjson.Unmarshal(answer, reply); err != nil || reply.DeviceCode == "" || reply.UserCode == "" {
		return nil, errors.New("the authorization server's response does not conform to RFC 8628")
	}
	return reply, nil
}

// pollDevice polls until the operator has entered the code (RFC 8628, sections 3.4 and 3.5).
func (c *connection) pollDevice(ctx context.Context, device *deviceReply) (*Status, error) {
	interval := time.Duration(cmp.Or(min(device.Interval, 3600), 5)) * time.Second
	for {
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		form, err := c.client(ctx, c.party())
		if err != nil {
			return nil, err
		}
		form.Set("grant_type", "urn:ietf:params:oauth:grant-type:device_code")
		form.Set("device_code", device.DeviceCode)
		status, err := c.connect(ctx, c.party(), form)
		var own *tokenError
		switch {
		case err == nil:
			return status, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.As(err, &own):
			return nil, err
		case own.code == "slow_down":
			interval += 5 * time.Second
		case own.code == "authorization_pending" || own.outcome == Unreachable:
		default:
			return nil, err
		}
	}
}
