package main

import "fmt"

// object is a JSON object of Grafana's dashboard model.
type object = map[string]any

var datasource = object{"type": "prometheus", "uid": "${datasource}"}

// json is the dashboard in Grafana's model.
func (d *dashboard) json() object {
	return object{
		"uid": d.name, "title": d.title, "description": d.about, "tags": []string{"hako"},
		"schemaVersion": 39, "version": 1, "editable": false, "graphTooltip": 1, "refresh": "30s",
		"timezone":   "browser",
		"time":       object{"from": "now-1h", "to": "now"},
		"templating": object{"list": d.templating()},
		"links": []object{{"type": "dashboards", "tags": []string{"hako"}, "title": "hako", "asDropdown": true,
			"includeVars": true, "keepTime": true}},
		"panels": d.panels(),
	}
}

// templating lists the variables: which Prometheus, which hako processes, and the dashboard's own.
func (d *dashboard) templating() []object {
	list := []object{
		{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1},
		choice(variable{"job", "Job", "label_values(hako_build_info, job)"}),
		choice(variable{"instance", "Instance", `label_values(hako_build_info{job=~"$job"}, instance)`}),
	}
	for _, v := range d.variables {
		list = append(list, choice(v))
	}
	return list
}

func choice(v variable) object {
	return object{
		"name": v.name, "label": v.label, "type": "query", "datasource": datasource,
		"query":      object{"query": v.query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
		"definition": v.query,
		"refresh":    2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".+",
		"current": object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
	}
}

// panels lays the rows out.
func (d *dashboard) panels() (list []object) {
	id, y := 0, 0
	place := func(o object, x, width, height int) {
		id++
		o["id"], o["gridPos"] = id, object{"x": x, "y": y, "w": width, "h": height}
		list = append(list, o)
	}
	for _, r := range d.rows {
		place(object{"type": "row", "title": r.title, "collapsed": false, "panels": []object{}}, 0, columns, 1)
		y++
		x, height := 0, 0
		for _, p := range r.panels {
			if x+p.width > columns {
				x, y, height = 0, y+height, 0
			}
			place(p.json(), x, p.width, p.height)
			x, height = x+p.width, max(height, p.height)
		}
		y += height
	}
	return list
}

// json is the panel in Grafana's model, without its place.
func (p *panel) json() object {
	instant := p.kind == "stat" || p.kind == "table" || p.kind == "bargauge"
	var targets []object
	for i, query := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": datasource, "expr": query.expr,
			"legendFormat": query.legend}
		switch {
		case instant:
			target["instant"] = true
		case p.unit == "s" && p.kind == "timeseries":
			target["exemplar"] = true
		}
		if p.kind == "table" {
			target["format"] = "table"
		}
		if p.kind == "heatmap" {
			target["format"] = "heatmap"
		}
		if query.legend == "" {
			target["legendFormat"] = "__auto"
		}
		targets = append(targets, target)
	}
	defaults := object{"unit": p.unit, "noValue": "0"}
	if p.kind == "timeseries" {
		defaults["min"] = 0
		defaults["custom"] = p.custom()
	}
	o := object{
		"type": p.kind, "title": p.title, "description": p.about, "datasource": datasource, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}}, "options": p.options(),
	}
	if p.kind == "table" {
		o["transformations"] = []object{{"id": "organize",
			"options": object{"excludeByName": object{"Time": true, "Value": true, "__name__": true}}}}
	}
	return o
}

func (p *panel) custom() object {
	custom := object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
	if p.stacked {
		custom["stacking"], custom["fillOpacity"] = object{"mode": "normal", "group": "A"}, 60
	}
	return custom
}

func (p *panel) options() object {
	switch p.kind {
	case "timeseries":
		return object{
			"legend": object{"displayMode": "table", "placement": "right", "showLegend": true,
				"calcs": []string{"lastNotNull", "max"}},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	case "stat":
		return object{"reduceOptions": reduce, "colorMode": "value", "graphMode": "area", "textMode": "auto"}
	case "bargauge":
		return object{"reduceOptions": reduce, "orientation": "horizontal", "displayMode": "basic"}
	case "heatmap":
		return object{"calculate": false, "yAxis": object{"unit": p.unit},
			"color": object{"scheme": "Oranges", "mode": "scheme"}}
	case "table":
		return object{"showHeader": true}
	}
	panic(fmt.Sprintf("a panel of the kind %q", p.kind)) // a mistake in this program
}

var reduce = object{"calcs": []string{"lastNotNull"}, "values": false, "fields": ""}
