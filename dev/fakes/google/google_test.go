package google

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	robot = "robot@example.iam.gserviceaccount.com"
	docID = "1fakeSpreadsheetOfTheTests0000000000000000000"
)

// serve returns a server with one spreadsheet that robot may write.
func serve(t *testing.T) (*Server, string) {
	t.Helper()
	s := New()
	s.AddSpreadsheet(docID, "Book", "Sheet1", "売上 2026/04")
	s.Share(docID, robot, "writer")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// web has connections of its own: httptest.Server.Close closes those of http.DefaultTransport, also under the requests
// of other tests.
var web = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// ask sends a request as robot and returns status and answer.
func ask(t *testing.T, s *Server, method, address, body string) (int, string) {
	t.Helper()
	return send(t, method, address, body, "Bearer "+s.Token(robot))
}

func send(t *testing.T, method, address, body, authorization string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	answer, err := web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func values(base, area string) string {
	return base + "/v4/spreadsheets/" + docID + "/values/" + url.PathEscape(area)
}

// The example of the guide on appending: two tables, and where rows go that are appended to a range.
func TestAppendFindsTheTable(t *testing.T) {
	t.Parallel()
	for area, want := range map[string]string{
		"Sheet1": "Sheet1!B7:C7", "Sheet1!B4": "Sheet1!B7:C7", "Sheet1!C5:D5": "Sheet1!B7:C7",
		"Sheet1!B2:D4":  "Sheet1!B7:C7",
		"Sheet1!A3:G10": "Sheet1!B7:C7", "Sheet1!A1": "Sheet1!A3:B3", "Sheet1!E4": "Sheet1!E4:F4",
		"Sheet1!G1:H2": "Sheet1!G1:H1",
	} {
		s, base := serve(t)
		for at, body := range map[string]string{"Sheet1!A1": `{"values":[["x","y",1],["z",2,3]]}`, "Sheet1!B5": `{"values":[["p",1,2],["q",1,2]]}`} {
			if status, text := ask(t, s, "PUT", values(base, at)+"?valueInputOption=RAW", body); status != 200 {
				t.Fatal(status, text)
			}
		}
		// B4:D6, as in the guide: its first row must not touch the table above, so it begins at B5 here and one row is
		// added.
		if status, text := ask(t, s, "PUT", values(base, "Sheet1!B4:D4")+"?valueInputOption=RAW", `{"values":[["r",0,0]]}`); status != 200 {
			t.Fatal(status, text)
		}
		_, text := ask(t, s, "POST", values(base, area)+":append?valueInputOption=RAW", `{"values":[["new","row"]]}`)
		var answer struct {
			Updates struct {
				Range string `json:"updatedRange"`
			} `json:"updates"`
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Updates.Range != want {
			t.Errorf("append to %s went to %s, want %s (%v)", area, answer.Updates.Range, want, err)
		}
	}
}

func TestInsertedRowsMoveWhatIsBelow(t *testing.T) {
	t.Parallel()
	s, base := serve(t)
	ask(t, s, "PUT", values(base, "'売上 2026/04'!A1")+"?valueInputOption=RAW",
		`{"values":[["a"],[null,null,"far"],["below"]]}`)
	address := values(base, "'売上 2026/04'!A1") + ":append?valueInputOption=RAW&insertDataOption=INSERT_ROWS"
	if status, text := ask(t, s, "POST", address, `{"values":[["b"],["c"]]}`); status != 200 {
		t.Fatal(status, text)
	}
	want := [][]any{{"a"}, {"b"}, {"c"}, {nil, nil, "far"}, {"below"}}
	if got := s.Values(docID, "売上 2026/04"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestValueInput(t *testing.T) {
	t.Parallel()
	s, base := serve(t)
	body := `{"values":[["=1+1","007",true,12.5,null,""]]}`
	ask(t, s, "PUT", values(base, "Sheet1!A1")+"?valueInputOption=RAW", body)
	ask(t, s, "PUT", values(base, "Sheet1!A2")+"?valueInputOption=USER_ENTERED", body)
	want := [][]any{{"=1+1", "007", true, 12.5}, {"=1+1", 7.0, true, 12.5}}
	if got := s.Values(docID, "Sheet1"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Only the second is a formula.
	if _, text := ask(t, s, "GET", values(base, "Sheet1!A1:A2"), ""); !strings.Contains(text, "=1+1") ||
		!strings.Contains(text, "#FORMULA") {
		t.Error(text)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s, base := serve(t)
	s.AddSpreadsheet("2readable", "Readable", "Sheet1")
	s.Share("2readable", robot, "reader")
	s.AddSpreadsheet("3private", "Private", "Sheet1")
	other := func(id string) string { return base + "/v4/spreadsheets/" + id + "/values/A1?valueInputOption=RAW" }
	raw := "?valueInputOption=RAW"
	for name, test := range map[string]struct {
		method, address, body string
		status                int
		says                  string
	}{
		"no such spreadsheet": {"GET", other("nowhere"), "", 404, "NOT_FOUND"},
		"not shared":          {"GET", other("3private"), "", 403, "PERMISSION_DENIED"},
		"read only":           {"PUT", other("2readable"), `{"values":[[1]]}`, 403, "PERMISSION_DENIED"},
		"no such sheet":       {"GET", values(base, "Nope!A1"), "", 400, "Unable to parse range"},
		"name without quotes": {"GET", values(base, "売上 2026/04!A1"), "", 400, "Unable to parse range"},
		"beyond the grid":     {"GET", values(base, "Sheet1!A1001"), "", 400, "exceeds grid limits. Max rows: 1000"},
		"values too many": {"PUT", values(base, "Sheet1!A1:B1") + raw, `{"values":[[1,2,3]]}`, 400,
			"tried writing to column"},
		"another range": {"PUT", values(base, "Sheet1!A1") + raw, `{"range":"Sheet1!B1","values":[[1]]}`, 400,
			"tried writing to range"},
		"no option": {"PUT", values(base, "Sheet1!A1"), `{"values":[[1]]}`, 400,
			"'valueInputOption' is required"},
		"an unknown member": {"PUT", values(base, "Sheet1!A1") + raw, `{"rows":[[1]]}`, 400, "unknown field"},
		"a list in a cell": {"PUT", values(base, "Sheet1!A1") + raw, `{"values":[[[1]]]}`, 400,
			"Invalid values[0][0]: list_value"},
		"an object in a cell": {"POST", values(base, "Sheet1!A1") + ":append" + raw, `{"values":[[1],[{}]]}`, 400,
			"Invalid values[1][0]: struct_value"},
	} {
		if status, text := ask(t, s, test.method, test.address, test.body); status != test.status ||
			!strings.Contains(text, test.says) {
			t.Errorf("%s: %d %s, want %d and %q", name, status, text, test.status, test.says)
		}
	}
	readonly := "Bearer " + s.Token(robot, "https://www.googleapis.com/auth/spreadsheets.readonly")
	if status, text := send(t, "PUT", values(base, "A1")+raw, `{"values":[[1]]}`, readonly); status != 403 ||
		!strings.Contains(text, "scopes") {
		t.Error(status, text)
	}
	s.ExpireTokens()
	if status, _ := send(t, "GET", values(base, "A1"), "", readonly); status != 401 {
		t.Error("an expired token:", status)
	}
}

// assertion signs claims with the key of the key file, after change.
func assertion(t *testing.T, keyFile []byte, change func(header, claims map[string]any)) string {
	t.Helper()
	key, err := privateKey()
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Email string `json:"client_email"`
		KeyID string `json:"private_key_id"`
		Token string `json:"token_uri"`
	}
	if err := json.Unmarshal(keyFile, &file); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	header := map[string]any{"alg": "RS256", "typ": "JWT", "kid": file.KeyID}
	claims := map[string]any{"iss": file.Email, "scope": sheetScopes[0], "aud": file.Token, "iat": now,
		"exp": now + 3600}
	change(header, claims)
	part := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	signed := part(header) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func TestToken(t *testing.T) {
	t.Parallel()
	s, base := serve(t)
	keyFile, err := s.AddServiceAccount(robot, base+"/token")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(header, claims map[string]any)
		says   string // empty: a token is given out
	}{
		"good":              {func(_, _ map[string]any) {}, ""},
		"Google's audience": {func(_, c map[string]any) { c["aud"] = wellKnown }, ""},
		"wrong audience":    {func(_, c map[string]any) { c["aud"] = "https://example.com/token" }, "invalid_grant"},
		"too long":          {func(_, c map[string]any) { c["exp"] = time.Now().Unix() + 7200 }, "short-lived"},
		"a clock behind": {func(_, c map[string]any) { c["iat"], c["exp"] = 1_500_000_000, 1_500_003_600 },
			"short-lived"},
		"a clock ahead": {func(_, c map[string]any) {
			c["iat"], c["exp"] = time.Now().Unix()+900, time.Now().Unix()+1800
		}, "short-lived"},
		"no scope":      {func(_, c map[string]any) { delete(c, "scope") }, "invalid_scope"},
		"unknown scope": {func(_, c map[string]any) { c["scope"] = "spreadsheets" }, "invalid_scope"},
		"unknown account": {func(_, c map[string]any) { c["iss"] = "nobody@example.iam.gserviceaccount.com" },
			"account not found"},
		"another key":  {func(h, _ map[string]any) { h["kid"] = "other" }, "Signature"},
		"no algorithm": {func(h, _ map[string]any) { h["alg"] = "none" }, "RS256"},
	} {
		form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
			"assertion": {assertion(t, keyFile, test.change)}}
		answer, err := http.PostForm(base+"/token", form)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		switch {
		case err != nil:
			t.Fatal(err)
		case test.says != "" && (answer.StatusCode != 400 || !strings.Contains(string(text), test.says)):
			t.Errorf("%s: %d %s, want %q", name, answer.StatusCode, text, test.says)
		case test.says == "" && answer.StatusCode != 200:
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
	}
	forged := assertion(t, keyFile, func(_, _ map[string]any) {})
	forged = forged[:strings.LastIndexByte(forged, '.')] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 256))
	if _, problem := s.verify(forged); !strings.Contains(problem, "Signature") {
		t.Errorf("a forged signature: %q", problem)
	}
}

// A token from the endpoint opens the spreadsheet.
func TestTokenOpens(t *testing.T) {
	t.Parallel()
	s, base := serve(t)
	keyFile, err := s.AddServiceAccount(robot, base+"/token")
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
		"assertion": {assertion(t, keyFile, func(_, _ map[string]any) {})}}
	answer, err := http.PostForm(base+"/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var token struct {
		Access  string `json:"access_token"`
		Type    string `json:"token_type"`
		Expires int    `json:"expires_in"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&token); err != nil || token.Type != "Bearer" ||
		token.Expires != 3599 {
		t.Fatal(err, token)
	}
	if status, text := send(t, "GET", values(base, "Sheet1"), "", "Bearer "+token.Access); status != 200 {
		t.Error(status, text)
	}
	if status, text := send(t, "GET", fmt.Sprintf("%s/v4/spreadsheets/%s?fields=sheets.properties.title", base, docID), "", "Bearer "+token.Access); status != 200 || !strings.Contains(text, "売上") {
		t.Error(status, text)
	}
}

func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	s, base := serve(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 10 {
				ask(t, s, "POST", values(base, "Sheet1")+":append?valueInputOption=RAW", `{"values":[["row"]]}`)
			}
		})
	}
	group.Wait()
	if got := len(s.Values(docID, "Sheet1")); got != 80 {
		t.Errorf("%d rows, want 80", got)
	}
}
