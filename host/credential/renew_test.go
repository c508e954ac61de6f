package credential

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// inBubble runs a test in a synctest bubble.
func inBubble(t *testing.T, f func(t *testing.T, s *authServer, dir string)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { f(t, newAuthServer(t), dir) })
}

func TestTokenIsRenewedBeforeItExpires(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *authServer, dir string) {
		var seen []Renewal
		b := s.offline(dir)
		b.options.Observe = func(r Renewal) { seen = append(seen, r) }
		storeConnection(t, b, "", 0, 6*time.Hour)
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{0, "access-0000"},
			{5*time.Hour + 44*time.Minute, "access-0000"},
			{2 * time.Minute, "access-0001"},
			{5*time.Hour + 44*time.Minute, "access-0001"},
			{2 * time.Minute, "access-0002"},
			{100 * 24 * time.Hour, "access-0003"}, // long after the expiry
		} {
			time.Sleep(step.after)
			if got := token(t, b, ""); got != step.want {
				t.Errorf("%v later: got %s, want %s", step.after, got, step.want)
			}
		}
		if len(seen) != 3 || seen[0] != (Renewal{"freee", Renewed}) {
			t.Errorf("observed %v", seen)
		}
		status := only(t, b)
		if status.State != Ready || status.Public["company_id"] != "1234" || len(status.Public) != 1 ||
			!status.Expires.Equal(time.Now().Add(6*time.Hour)) {
			t.Errorf("status %+v", status)
		}
		b.Close()
	})
}

// TestOneRenewalForAllProcesses: two Brokers with one directory, which the store treats like two processes, and many
// callers.
func TestOneRenewalForAllProcesses(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *authServer, dir string) {
		brokers := []*Broker{s.offline(dir), s.offline(dir)}
		for _, b := range brokers { // open the stores: a goroutine that waits for a mutex stops the clock of a bubble
			storeConnection(t, b, "", -6*time.Hour, time.Minute)
		}
		s.before = func(http.ResponseWriter, url.Values) bool { time.Sleep(3 * time.Second); return false }
		var callers sync.WaitGroup
		for i := range 40 {
			callers.Go(func() {
				if got := token(t, brokers[i%2], ""); got != "access-0001" && got != "access-0000" {
					t.Errorf("got %s", got)
				}
			})
		}
		callers.Wait()
		if n := s.refreshes(); n != 1 {
			t.Errorf("%d renewals, want 1", n)
		}
		for _, b := range brokers {
			if got := token(t, b, ""); got != "access-0001" {
				t.Errorf("afterwards: %s", got)
			}
			b.Close()
		}
	})
}

// TestCallThatEndsDoesNotLoseTheAnswer cancels the caller before the server responds.
func TestCallThatEndsDoesNotLoseTheAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *authServer, dir string) {
		b := s.offline(dir)
		storeConnection(t, b, "", -7*time.Hour, -time.Hour)
		s.before = func(http.ResponseWriter, url.Values) bool { time.Sleep(10 * time.Second); return false }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Credential(ctx, "", "freee"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		b.Close() // waits
		again := s.offline(dir)
		if got := token(t, again, ""); got != "access-0001" || s.refreshes() != 1 {
			t.Errorf("got %s after %d renewals", got, s.refreshes())
		}
		again.Close()
	})
}

// TestWatch: an unused connection is renewed too, once for all processes.
func TestWatch(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *authServer, dir string) {
		brokers := []*Broker{s.offline(dir), s.offline(dir)}
		for _, b := range brokers {
			storeConnection(t, b, "acme", 0, 6*time.Hour)
		}
		ended := &record{Connection: "x", AccessToken: "access-dead", RefreshToken: "refresh-dead",
			Expires: time.Now(), Ended: "revoked"}
		if err := brokers[0].vault.put(t.Context(), id{"other", "freee"}, ended); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		for _, b := range brokers {
			watching.Go(func() { b.Watch(ctx) })
		}
		time.Sleep(24 * time.Hour)
		cancel()
		watching.Wait()
		if n := s.refreshes(); n != 4 {
			t.Errorf("%d renewals in a day of tokens that live for six hours, want 4", n)
		}
		if got := token(t, brokers[0], "acme"); got != "access-0004" {
			t.Errorf("got %s", got)
		}
		for _, b := range brokers {
			b.Close()
		}
	})
}

func TestFailedRenewals(t *testing.T) {
	t.Parallel()
	lost := func(http.ResponseWriter, url.Values) bool { panic(errBroken) }
	answer := func(status int, body string) func(http.ResponseWriter, url.Values) bool {
		return func(w http.ResponseWriter, _ url.Values) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	}
	redirect := func(w http.ResponseWriter, _ url.Values) bool {
		w.Header().Set("Location", "http://127.0.0.1:1/token")
		w.WriteHeader(http.StatusFound)
		return true
	}
	tests := map[string]struct {
		before  func(http.ResponseWriter, url.Values) bool
		outcome string
		state   string
		remedy  string
	}{
		"revoked": {answer(401, `{"error":"invalid_grant","error_description":"refresh-0000 is\n used"}`),
			Revoked, Reconnect, "hako connect freee --tenant acme (the authorization server answered invalid_grant " +
				"(*** is used))"},
		"lost":     {lost, Lost, Reconnect, "did not arrive"},
		"no JSON":  {answer(200, "<html>"), Lost, Reconnect, "did not arrive"},
		"no token": {answer(200, `{"token_type":"bearer"}`), Lost, Reconnect, "did not arrive"},
		"not a bearer token": {answer(200, `{"access_token":"0123456789","token_type":"mac"}`), Lost,
			Reconnect, `has the type \"mac\"`},
		"header injection": {answer(200, `{"access_token":"0123456789\r\nX: y"}`), Lost, Reconnect,
			"not a printable ASCII"},
		"maintenance": {answer(503, "<html>"), Refused, Ready,
			"the last renewal failed and will be retried: the authorization server answered with status 503"},
		"too many":            {answer(429, `{}`), Refused, Ready, ""},
		"redirect":            {redirect, Refused, Ready, ""},
		"client is not known": {answer(401, `{"error":"invalid_client"}`), Refused, Ready, ""},
	}
	for name, test := range tests {
		for _, usable := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, s *authServer, dir string) {
					b := s.offline(dir)
					var seen []Renewal
					b.options.Observe = func(r Renewal) { seen = append(seen, r) }
					expires := -time.Hour
					if usable {
						expires = 10 * time.Minute
					}
					storeConnection(t, b, "acme", -6*time.Hour, expires)
					s.before = test.before
					for range 3 { // immediately: no request is sent
						got := token(t, b, "acme")
						if usable && got != "access-0000" {
							t.Errorf("the old token still works, and yet: %s", got)
						}
						if !usable && !strings.Contains(got, "the credential freee of tenant acme") {
							t.Errorf("got %s", got)
						}
					}
					if len(seen) != 1 || seen[0].Outcome != test.outcome || s.refreshes() != 1 {
						t.Fatalf("%d requests, observed %v, want one %s", s.refreshes(), seen, test.outcome)
					}
					status := only(t, b)
					state := test.state
					if !usable && state == Ready {
						state = Unusable // temporarily
					}
					if status.State != state || !strings.Contains(status.Remedy,
						strings.ReplaceAll(test.remedy, `\"`, `"`)) {
						t.Errorf("status %+v, want %s, %q", status, test.state, test.remedy)
					}
					s.before = nil
					time.Sleep(time.Hour)
					got := token(t, b, "acme")
					if test.state != Reconnect && got != "access-0001" {
						t.Errorf("an hour later: %s", got)
					}
					if test.state == Reconnect && (!strings.Contains(got, "run hako connect freee --tenant acme") &&
						!strings.Contains(got, "runs hako connect freee --tenant acme") || s.refreshes() != 1) {
						t.Errorf("an hour later: %s, %d requests", got, s.refreshes())
					}
					b.Close()
				})
			})
		}
	}
}

// TestUnsavedTokens: if the store refuses a new pair of tokens, nobody uses it, no process uses the old pair, and it is
// stored in the end.
func TestUnsavedTokens(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]bool{"renewed": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *authServer, dir string) { unsaved(t, s, dir, answered) })
		})
	}
}

// unsaved runs a renewal whose result, or whose temporary failure, cannot be stored at first.
func unsaved(t *testing.T, s *authServer, dir string, answered bool) {
	b, other := s.offline(dir), s.offline(dir)
	for _, b := range []*Broker{b, other} {
		storeConnection(t, b, "", -7*time.Hour, -time.Hour)
	}
	s.before = func(w http.ResponseWriter, _ url.Values) bool {
		change(t, other, "CREATE TRIGGER refuse BEFORE UPDATE ON credential BEGIN SELECT RAISE(ABORT, 'no room'); END")
		if !answered {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		s.before = nil
		return !answered
	}
	for _, wait := range []time.Duration{0, 5 * time.Second, pause} {
		time.Sleep(wait)
		if got := token(t, b, ""); !strings.Contains(got, "cannot be stored") || !strings.Contains(got, "no room") {
			t.Errorf("got %s", got)
		}
		if status := only(t, other); status.State != Ready {
			t.Errorf("another process takes it for lost: %+v", status)
		}
	}
	change(t, other, "DROP TRIGGER refuse")
	time.Sleep(2 * time.Second)
	want := 1
	if !answered {
		want = 2
	}
	for _, b := range []*Broker{b, other} {
		if got := token(t, b, ""); got != "access-0001" || s.refreshes() != want {
			t.Errorf("got %s after %d renewals, want %d", got, s.refreshes(), want)
		}
		b.Close()
	}
}

// TestRefreshTokenThatStays: a refresh response without a new refresh token (RFC 6749, section 6) and without public
// members.
func TestRefreshTokenThatStays(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *authServer, dir string) {
		b := s.offline(dir)
		storeConnection(t, b, "", -7*time.Hour, -time.Hour)
		n := 0
		s.before = func(w http.ResponseWriter, form url.Values) bool {
			if form.Get("refresh_token") != "refresh-0000" {
				t.Errorf("sent %v", form)
			}
			n++
			reply(w, 200, map[string]any{"access_token": []string{"", "access-aaaa", "access-bbbb"}[n],
				"expires_in": "3600", "company_id": []any{nil, nil, 77}[n]})
			return true
		}
		for _, want := range [][2]string{{"access-aaaa", "1234"}, {"access-bbbb", "77"}} {
			if got, status := token(t, b, ""), only(t, b); got != want[0] || status.Public["company_id"] != want[1] {
				t.Errorf("got %s and %+v, want %s", got, status, want)
			}
			time.Sleep(2 * time.Hour)
		}
		b.Close()
	})
}

func TestServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	b := newBroker(t, options(t.TempDir(), freeeSpec("http://127.0.0.1:1")))
	storeConnection(t, b, "", -6*time.Hour, time.Minute)
	if got := token(t, b, ""); got != "access-0000" {
		t.Errorf("the old token still works, and yet: %s", got)
	}
	b = newBroker(t, options(t.TempDir(), freeeSpec("http://127.0.0.1:1")))
	storeConnection(t, b, "", -6*time.Hour, -time.Minute)
	_, err := b.Credential(t.Context(), "", "freee")
	var own *abi.Error
	if !errors.As(err, &own) || own.Code != abi.CodeCredential || !strings.Contains(own.Message, "try again later") ||
		!strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v", err)
	}
	if status := only(t, b); status.State != Unusable || !strings.Contains(status.Remedy, "cannot be reached") {
		t.Errorf("status %+v", status)
	}
}

func TestRefusedTokenIsRenewed(t *testing.T) {
	t.Parallel()
	const expired = `{"message":"アクセスする権限がありません","code":"expired_access_token"}`
	tests := map[string]struct {
		status int
		body   string
		age    time.Duration
		sent   string
		want   string
	}{
		"401":                       {401, `{"message":"ログインをしてください。"}`, time.Hour, "access-0000", "access-0001"},
		"403 with the code":         {403, expired, time.Hour, "access-0000", "access-0001"},
		"403 for another reason":    {403, `{"status_code":403,"errors":[]}`, time.Hour, "access-0000", ""},
		"403 without JSON":          {403, "<html>", time.Hour, "access-0000", ""},
		"just issued":               {401, expired, time.Second, "access-0000", ""},
		"somebody else was quicker": {401, expired, time.Hour, "access-old", "access-0000"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *authServer, dir string) {
				b := s.offline(dir)
				storeConnection(t, b, "", -test.age, 6*time.Hour)
				c, err := b.Renew(t.Context(), "", "freee", &broker.Credential{Value: "Bearer " + test.sent},
					test.status, []byte(test.body))
				got := ""
				if c != nil {
					got = strings.TrimPrefix(c.Value, "Bearer ")
				}
				if err != nil || got != test.want {
					t.Errorf("got %q, %v, want %q", got, err, test.want)
				}
				b.Close()
			})
		})
	}
}

// TestClocks: a server with a wrong clock makes tokens neither look expired nor last too long.
func TestClocks(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	tests := map[string]struct {
		created time.Duration
		in      flexible
		want    time.Duration
	}{
		"same clock":       {-time.Second, 21600, 6*time.Hour - time.Second},
		"its clock ahead":  {time.Hour, 21600, 6 * time.Hour},
		"its clock behind": {-time.Hour, 21600, 5 * time.Hour},
		"far behind":       {-48 * time.Hour, 21600, 6 * time.Hour},
		"no expiry":        {0, 0, 0},
		"absurdly long":    {0, 1 << 50, 1 << 31 * time.Second},
	}
	for name, test := range tests {
		r := &tokenReply{CreatedAt: flexible(now.Add(test.created).Unix()), ExpiresIn: test.in}
		got := r.expires(now)
		if test.want == 0 && !got.IsZero() || test.want != 0 && !got.Equal(now.Add(test.want)) {
			t.Errorf("%s: expires %v from now, want %v", name, got.Sub(now), test.want)
		}
	}
	if got := (&tokenReply{ExpiresIn: 60}).expires(now); !got.Equal(now.Add(time.Minute)) {
		t.Errorf("without created_at: %v", got)
	}
}

// TestTenantsConnections: a tenant never gets another tenant's connection, however the store was changed.
func TestTenantsConnections(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *authServer, dir string) {
		b := s.offline(dir)
		storeConnection(t, b, "acme", 0, time.Hour)
		if got := token(t, b, "acme"); got != "access-0000" {
			t.Fatal(got)
		}
		for _, tenant := range []string{"", "other", "acme\x00"} {
			if got := token(t, b, tenant); !strings.Contains(got, "is not connected") {
				t.Errorf("tenant %q: %s", tenant, got)
			}
		}
		change(t, b, "UPDATE credential SET tenant = 'other'")
		if got := token(t, b, "other"); !strings.Contains(got, "cannot be read from the store") ||
			!strings.Contains(got, "was modified, or belongs to another") {
			t.Errorf("a record put in another's place: %s", got)
		}
		b.Close()
	})
}
