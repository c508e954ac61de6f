package main

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/locale"
)

const (
	// membersPage is the number of members in one answer of users.list, maxPages the most answers that are read.
	membersPage = 1000
	maxPages    = 50
	// maxMembersBody bounds such an answer, in bytes; a member has some 2 KiB.
	maxMembersBody = 16 << 20
	// maxFound limits the people that an answer names.
	maxFound = 20
)

// findArguments are those of find_slack_user.
type findArguments struct {
	Name string `json:"name"`
}

// found is the structured content of find_slack_user.
type found struct {
	Total int      `json:"total"`
	Notes []string `json:"notes"`
	Users []person `json:"users"`
}

// person describes a member: enough to distinguish people and to write to one, and no address of any kind.
type person struct {
	User        string `json:"user_id"`
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	IsGuest     bool   `json:"is_guest,omitempty"`

	rank int
}

// member is one of users.list, as far as it is used.
type member struct {
	ID         string `json:"id"`
	Handle     string `json:"name"`
	Deleted    bool   `json:"deleted"`
	Bot        bool   `json:"is_bot"`
	Restricted bool   `json:"is_restricted"`
	Profile    struct {
		Real    string `json:"real_name"`
		Display string `json:"display_name"`
	} `json:"profile"`
}

// slackbot is Slack's own, which users.list does not mark as a bot.
const slackbot = "USLACKBOT"

func find(ctx context.Context, in findArguments) (*pdk.Result, error) {
	slack, err := newClient(ctx)
	if err != nil {
		return nil, err
	}
	people, err := slack.named(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(people, func(a, b person) int {
		return cmp.Or(a.rank-b.rank, strings.Compare(a.Name, b.Name), strings.Compare(a.User, b.User))
	})
	out := found{Total: len(people), Notes: []string{}, Users: slices.Clone(people[:min(len(people), maxFound)])}
	switch {
	case len(people) == 0:
		out.Users = []person{}
		out.Notes = append(out.Notes, locale.Text{
			"en": "Nobody is called so. Try a part of the name, or its other spelling (kanji, kana, Latin letters).",
			"ja": "該当する人はいません。名前の一部や、別の表記（漢字・かな・ローマ字）でも試してください。",
		}.In(pdk.Locale(ctx)))
	case len(people) > 1:
		out.Notes = append(out.Notes, locale.Text{
			"en": "Several people fit: ask the user who is meant before you send anything.",
			"ja": "複数の人が該当します。送信する前に、誰のことか利用者に確認してください。",
		}.In(pdk.Locale(ctx)))
	}
	return pdk.Structured(out), nil
}

// named reads all members and returns the people whose name or display name fits.
func (c *client) named(ctx context.Context, name string) ([]person, error) {
	people := []person{}
	cursor := ""
	for range maxPages {
		members, next, err := c.members(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			if m.Deleted || m.Bot || m.ID == slackbot {
				continue
			}
			if rank := m.fits(name); rank > 0 {
				people = append(people, person{m.ID, shorten(m.Profile.Real), shorten(m.Profile.Display), m.Restricted,
					rank})
			}
		}
		if cursor = next; cursor == "" {
			return people, nil
		}
	}
	return nil, fail("the workspace has more than %d members, which is too many to look through",
		"ワークスペースのメンバーが %d 人を超えているため、検索できません", maxPages*membersPage)
}

// members reads one page of users.list. Reading it twice does no harm, so a failure is one after which to try again.
func (c *client) members(ctx context.Context, cursor string) ([]member, string, error) {
	response, err := pdk.Fetch(ctx, &pdk.HTTPRequest{
		Method: "POST", URL: c.base + "/users.list", MaxBody: maxMembersBody,
		Body:   []byte(url.Values{"limit": {strconv.Itoa(membersPage)}, "cursor": {cursor}}.Encode()),
		Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded", "User-Agent": userAgent},
	})
	if err != nil {
		return nil, "", err
	}
	var a struct {
		answer
		Members  []member `json:"members"`
		Response struct {
			Next string `json:"next_cursor"`
		} `json:"response_metadata"`
	}
	broken := json.Unmarshal(response.Body, &a)
	switch {
	case response.Status == 429 || a.Error == "ratelimited" || a.Error == "rate_limited":
		return nil, "", fail("Slack limits how often members are looked up (%s): try again in %s seconds",
			"Slack のメンバー検索の回数の上限に達しました (%s)。%s 秒後にもう一度試してください", cmp.Or(a.Error, "HTTP 429"), pause(response))
	case response.Status != 200:
		return nil, "", fail("Slack failed (%s: HTTP %d)", "Slack でエラーが起きました (%s: HTTP %d)", "users.list",
			response.Status)
	case broken != nil || a.OK && a.Members == nil:
		return nil, "", fail("Slack's answer is not of the expected shape (%s)", "Slack の応答が想定した形ではありません (%s)",
			"users.list")
	case !a.OK:
		return nil, "", refused("users.list", &a.answer)
	}
	return a.Members, a.Response.Next, nil
}

// fits ranks how well a name fits the member: 1 for a whole name, 2 for a word of one, 3 for a part, 0 for none of
// these.
func (m member) fits(name string) (rank int) {
	wanted := fold(name)
	for _, own := range []string{m.Profile.Real, m.Profile.Display, m.Handle} {
		switch {
		case own == "" || wanted == "":
		case fold(own) == wanted:
			return 1
		case slices.ContainsFunc(words(own), func(w string) bool { return fold(w) == wanted }):
			rank = 2
		case rank == 0 && strings.Contains(fold(own), wanted):
			rank = 3
		}
	}
	return rank
}

// fold makes names comparable: in one case, in narrow letters and wide katakana, and without spaces and a leading "@".
func fold(name string) string {
	name = strings.Map(narrow, name)
	for _, voiced := range voicing {
		name = strings.ReplaceAll(name, voiced[0], voiced[1])
	}
	return strings.ToLower(strings.Join(strings.Fields(strings.TrimPrefix(strings.TrimSpace(name), "@")), ""))
}

// narrow turns the wide forms of Latin letters, digits and signs (U+FF01 to U+FF5E) into the usual ones, and half-width
// katakana into the wide ones.
func narrow(r rune) rune {
	switch {
	case r >= '！' && r <= '～':
		return r - '！' + '!'
	case r >= 0xff66 && r <= 0xff9d:
		return []rune(wideKana)[r-0xff66]
	case r == 0xff9e:
		return 0x3099
	case r == 0xff9f:
		return 0x309a
	}
	return r
}

// wideKana are the katakana of U+FF66 to U+FF9D.
const wideKana = "ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン"

// voicing are the kana with a voicing mark of its own, and the one character that is meant.
var voicing = func() (pairs [][2]string) {
	for _, r := range "カキクケコサシスセソタチツテトハヒフヘホかきくけこさしすせそたちつてとはひふへほ" {
		pairs = append(pairs, [2]string{string(r) + "\u3099", string(r + 1)})
	}
	for _, r := range "ハヒフヘホはひふへほ" {
		pairs = append(pairs, [2]string{string(r) + "\u309a", string(r + 2)})
	}
	return append(pairs, [2]string{"ウ\u3099", "ヴ"}, [2]string{"う\u3099", "ゔ"})
}()

// words are the parts of a name between spaces and the signs that people put between them.
func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" \u3000.,_/()（）・-", r) })
}
