package main

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/hako-run/hako/pdk"
)

// Paths below the base URL. JMA documents none of them.
const (
	areaPath         = "/common/const/area.json"
	forecastPath     = "/forecast/data/forecast/"
	overviewPath     = "/forecast/data/overview_forecast/"
	overviewWeekPath = "/forecast/data/overview_week/"
	stationPath      = "/forecast/const/forecast_area.json"
	weekAreaPath     = "/forecast/const/week_area05.json"
)

const (
	defaultBaseURL = "https://www.jma.go.jp/bosai"
	userAgent      = "hako-weather/0.1 (+https://github.com/hako-run/hako)"
	// maxBody is some ten times the size of the largest file, area.json.
	maxBody = 4 << 20
)

// client reads JMA's files. Its errors are texts for the caller, in the caller's language.
type client struct {
	base string
	lang language
}

func (c client) get(ctx context.Context, path string) ([]byte, error) {
	response, err := pdk.Fetch(ctx, &pdk.HTTPRequest{
		URL:     c.base + path,
		Header:  map[string]string{"Accept": "application/json", "User-Agent": userAgent},
		MaxBody: maxBody,
	})
	if err != nil {
		// The address is the operator's business; it stands in errors of the network.
		reason := strings.ReplaceAll(err.Error(), c.base+path, path)
		if base, parseErr := url.Parse(c.base); parseErr == nil && base.Host != "" {
			reason = strings.ReplaceAll(strings.ReplaceAll(reason, base.Host, "JMA"), base.Hostname(), "JMA")
		}
		return nil, c.lang.errorf("気象庁の %s を取得できません: %s", "could not get %s from JMA: %s", path, reason)
	}
	if response.Status != 200 {
		return nil, c.statusError(path, response.Status)
	}
	return response.Body, nil
}

func (c client) statusError(path string, status int) error {
	switch {
	case status == 404:
		return c.lang.errorf("気象庁に %s がありません（HTTP 404）。設定 base_url が正しければ、気象庁が構成を変えた可能性があります。",
			"JMA has no %s (HTTP 404). If the setting base_url is right, JMA may have moved it.", path)
	case status == 429:
		return c.lang.errorf("気象庁のサーバーがアクセスを制限しています（%s、HTTP 429）。数分おいてもう一度試してください。",
			"JMA's server is limiting requests (%s, HTTP 429). Try again in a few minutes.", path)
	case status >= 500:
		return c.lang.errorf("気象庁のサーバーが一時的に応答できません（%s、HTTP %d）。数分おいてもう一度試してください。",
			"JMA's server is temporarily unavailable (%s, HTTP %d). Try again in a few minutes.", path, status)
	}
	return c.lang.errorf("気象庁の %s が HTTP %d を返しました。設定 base_url を確かめてください。",
		"JMA answered %s with HTTP %d. Check the setting base_url.", path, status)
}

func (c client) shapeError(path string, err error) error {
	return c.lang.errorf("%s は想定した形のデータではありません（%w）。続くようなら、設定 base_url を確かめるか、このプラグインを更新してください。",
		"%s is not data of the expected shape (%w). If it stays so, check the setting base_url or update this plugin.",
		path, err)
}

// forecast fetches an office's forecast.
func (c client) forecast(ctx context.Context, office string) (*forecast, error) {
	path := forecastPath + office + ".json"
	data, err := c.get(ctx, path)
	if err != nil {
		return nil, err
	}
	f, err := parseForecast(data)
	if err != nil {
		return nil, c.shapeError(path, err)
	}
	return f, nil
}

// areas fetches the table of all areas.
func (c client) areas(ctx context.Context) (*areaTable, error) {
	data, err := c.get(ctx, areaPath)
	if err != nil {
		return nil, err
	}
	table, err := parseAreas(data)
	if err != nil {
		return nil, c.shapeError(areaPath, err)
	}
	return table, nil
}

// stationsOf fetches the stations of a class10 area, best first; nil if they cannot be had.
func (c client) stationsOf(ctx context.Context, class10 string) []string {
	var table map[string][]struct {
		Class10 string   `json:"class10"`
		Amedas  []string `json:"amedas"`
	}
	c.table(ctx, stationPath, &table)
	for _, areas := range table {
		for _, area := range areas {
			if area.Class10 == class10 {
				return area.Amedas
			}
		}
	}
	return nil
}

// weekAreasOf fetches the weekly areas that a class10 area may belong to; nil if they cannot be had.
func (c client) weekAreasOf(ctx context.Context, class10 string) []string {
	var table map[string][]string
	c.table(ctx, weekAreaPath, &table)
	return table[class10]
}

// table fetches one of JMA's small tables. Answers do without, so a failure only goes to the log.
func (c client) table(ctx context.Context, path string, into any) {
	c.lang = english // of the log
	data, err := c.get(ctx, path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		pdk.Log(ctx).Warn("go on without one of JMA's tables", "path", path, "err", err)
	}
}

// overview is JMA's forecast in prose, in Japanese.
type overview struct {
	Headline string `json:"headline,omitempty"`
	Text     string `json:"text"`
	Reported string `json:"reportedAt"`
}

// maxOverview bounds a part of an overview, in characters; the longest that JMA writes have about 2,000.
const maxOverview = 6000

// overview fetches the overview of an office's area, or of the region around it for the week.
func (c client) overview(ctx context.Context, office string, week bool) (*overview, error) {
	path := overviewPath + office + ".json"
	if week {
		path = overviewWeekPath + regionOf(office) + ".json"
	}
	data, err := c.get(ctx, path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Reported string `json:"reportDatetime"`
		Headline string `json:"headlineText"`
		Title    string `json:"headTitle"`
		Text     string `json:"text"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, c.shapeError(path, err)
	}
	return &overview{
		Headline: limit(strings.Trim(file.Headline+file.Title, " \r\n"), maxOverview),
		Text:     limit(strings.Trim(file.Text, " \r\n"), maxOverview),
		Reported: file.Reported,
	}, nil
}

// regionOf returns the office that issues the weekly overview for an office's region.
func regionOf(office string) string {
	regions := [...]struct {
		last int // the number of the region's last prefecture
		code string
	}{{1, "016000"}, {7, "040000"}, {14, "130000"}, {18, "150000"}, {20, "130000"}, {24, "230000"}, {30, "270000"},
		{34, "340000"}, {35, "400000"}, {39, "370000"}, {44, "400000"}, {46, "460100"}, {47, "471000"}}
	for _, region := range regions {
		if prefectureOf(office) <= region.last {
			return region.code
		}
	}
	return office
}
