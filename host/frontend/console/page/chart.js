// Small charts over time, drawn as SVG. Each has its numbers as a table too, and can be read with the pointer or the arrow keys. The figures
// come as points: [calls, failures, p50, p95, p99], one for each step.
import { h, put, svg, visible } from './dom.js'
import { local, t } from './language.js'

const margin = { top: 8, right: 8, bottom: 20, left: 52 }
const height = 168

/**
 * chart draws lines over time, or stacked areas. It returns {element, draw}: draw takes {times, step, series: [{name, tone, values}]}, where a value may
 * be null, with a title where it is not the chart's own, and may be called again at any time. A click, or Enter, leads to the calls of that time in the audit log; tool names the tool that they are of. format turns a value into text; tone is one of the classes tone-… of the style sheet.
 */
export function chart({ title, format, stacked = false, tool }) {
  const heading = h('h2', {}, title)
  const plot = h('div', { class: 'plot', tabindex: 0, role: 'img', 'aria-label': title, title: t('chart.open') })
  const legend = h('ul', { class: 'legend' })
  const readout = h('output', { class: 'readout' })
  const numbers = h('div', { class: 'scroll', tabindex: 0 })
  const element = h('figure', { class: 'chart' },
    h('figcaption', {}, heading, legend),
    plot, readout,
    h('details', { class: 'numbers', ontoggle: () => tabulate() }, h('summary', {}, t('chart.table')), numbers))
  let data = { times: [], step: 0, series: [] }
  let chosen = -1

  const draw = next => {
    data = next ?? data
    chosen = Math.min(chosen, data.times.length - 1)
    heading.textContent = visible(data.title ?? title)
    put(legend, data.series.map(s => h('li', { class: s.tone }, h('span', { class: 'swatch' }), s.name)))
    plot.setAttribute('aria-label', `${heading.textContent}: ${summary(data, format)}`)
    put(plot, picture(data, plot.clientWidth || 480, format, stacked, chosen))
    tell()
    tabulate()
  }
  const tabulate = () => {
    const open = element.querySelector('details').open
    put(numbers, open && table(data, heading.textContent, format))
  }
  const tell = () => {
    readout.textContent = chosen < 0 ? '' : `${when(data.times[chosen], data.step)}  ` +
      data.series.map(s => `${s.name} ${shown(s.values[chosen], format)}`).join('  ')
  }
  const choose = index => {
    chosen = Math.max(-1, Math.min(data.times.length - 1, index))
    put(plot, picture(data, plot.clientWidth || 480, format, stacked, chosen))
    tell()
  }
  plot.addEventListener('pointermove', event => {
    const inner = plot.clientWidth - margin.left - margin.right
    const share = (event.clientX - plot.getBoundingClientRect().left - margin.left) / inner
    choose(Math.round(Math.max(0, Math.min(1, share)) * (data.times.length - 1)))
  })
  plot.addEventListener('pointerleave', () => choose(-1))
  plot.addEventListener('blur', () => choose(-1))
  const open = () => {
    if (chosen >= 0) location.hash = callsAt(data.times[chosen], data.step, tool)
  }
  plot.addEventListener('click', open)
  plot.addEventListener('keydown', event => {
    if (event.key === 'Enter') open()
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (!step || data.times.length === 0) return
    event.preventDefault()
    choose(chosen < 0 ? data.times.length - 1 : Math.max(0, chosen + step))
  })
  new ResizeObserver(() => draw()).observe(plot)
  return { element, draw }
}

/** callsAt returns the address of a step's calls in the audit log, in whole minutes. */
function callsAt(time, step, tool) {
  const minute = 60_000
  const text = ms => local(new Date(ms)).slice(0, 'YYYY-MM-DDTHH:MM'.length)
  const end = Math.ceil((time + step * 1000) / minute) * minute
  return `#/audit?${new URLSearchParams({ ...tool && { tool }, type: 'tools/call', from: text(time), to: text(end) })}`
}

/** sparkline draws a line without axes, to stand beside the same figure in text; null if all values are zero. */
export function sparkline(values, tone) {
  const top = Math.max(...values, 0)
  if (top === 0) return null
  const points = values.map((value, i) => [values.length > 1 ? i * 100 / (values.length - 1) : 0, 27 - 24 * (value ?? 0) / top])
  const line = path(points)
  return svg('svg', { class: `sparkline ${tone}`, viewBox: '0 0 100 28', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    points.length > 1 && [svg('path', { class: 'area', d: `${line}L100 28L0 28Z` }), svg('path', { class: 'line', d: line })])
}

function picture({ times, step, series }, width, format, stacked, chosen) {
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom }
  const levels = stacked ? stack(series) : series.map(s => ({ ...s, base: null }))
  const top = nice(Math.max(0, ...levels.flatMap(s => s.values.filter(value => value !== null))))
  const x = i => margin.left + (times.length > 1 ? inner.width * i / (times.length - 1) : 0)
  const y = value => margin.top + inner.height * (1 - value / top)
  return svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' },
    [0, 0.5, 1].map(share => gridline(share * top, y(share * top), width, format)),
    levels.toReversed().map(s => drawn(s, x, y)),
    timeAxis(times, step, x, width),
    times.length === 0 && svg('text', { class: 'axis', x: width / 2, y: height / 2, 'text-anchor': 'middle' }, t('chart.empty')),
    chosen >= 0 && svg('line', { class: 'cursor', x1: x(chosen), x2: x(chosen), y1: margin.top, y2: height - margin.bottom }))
}

function gridline(value, y, width, format) {
  return [
    svg('line', { class: 'grid', x1: margin.left, x2: width - margin.right, y1: y, y2: y }),
    svg('text', { class: 'axis', x: margin.left - 6, y: y + 4, 'text-anchor': 'end' }, format(value)),
  ]
}

function timeAxis(times, step, x, width) {
  if (times.length < 2) return []
  const labels = width < 380 ? 3 : 5
  return Array.from({ length: labels }, (_, i) => Math.round(i * (times.length - 1) / (labels - 1))).map((at, i) =>
    svg('text', { class: 'axis', x: x(at), y: height - 5, 'text-anchor': i === 0 ? 'start' : i === labels - 1 ? 'end' : 'middle' }, step < 3600 ? dated(times[at]) : date(times[at])))
}

/** drawn draws a line, broken where values are missing; with a base, the area between the two; single points if values are sparse. */
function drawn({ tone, values, base }, x, y) {
  const points = values.map((value, i) => value === null ? null : [x(i), y(value)])
  if (isSparse(values, base)) {
    return svg('g', { class: tone }, points.map((point, i) => point && values[i] > (base?.[i] ?? 0) &&
      [base && svg('path', { class: 'line', d: `M${point}L${x(i)} ${y(base[i])}` }), dot(point)]))
  }
  if (base === null) return svg('g', { class: tone }, svg('path', { class: 'line', d: path(points) }), dots(points))
  const floor = base.map((value, i) => [x(i), y(value)]).toReversed()
  return svg('g', { class: tone },
    svg('path', { class: 'area', d: `${path(points)}L${path(floor).slice(1)}Z` }),
    svg('path', { class: 'line', d: path(points) }))
}

/** path connects the points, with gaps at missing ones. */
function path(points) {
  return points.map((point, i) => point === null ? '' : `${points[i - 1] ? 'L' : 'M'}${point[0].toFixed(1)} ${point[1].toFixed(1)}`).join('')
}

/** dots draws the points without a line. */
function dots(points) {
  return points.filter((point, i) => point && !points[i - 1] && !points[i + 1]).map(dot)
}

function dot([x, y]) {
  return svg('circle', { class: 'dot', cx: x.toFixed(1), cy: y.toFixed(1), r: 2.5 })
}

/** isSparse reports whether there are too few values for a line: it would suggest values that were never measured. */
function isSparse(values, base) {
  const some = values.filter((value, i) => value !== null && value > (base?.[i] ?? 0)).length
  return some > 0 && some * 8 <= values.length
}

function stack(series) {
  let base = series[0]?.values.map(() => 0) ?? []
  return series.map(s => {
    const values = s.values.map((value, i) => base[i] + (value ?? 0))
    const level = { ...s, values, base }
    base = values
    return level
  })
}

/** nice rounds up to a number that makes the axis easy to read. */
function nice(value) {
  if (!(value > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 4, 5, 10].find(step => step * power >= value) * power
}

const pad = n => String(n).padStart(2, '0')

function clock(at) {
  const moment = new Date(at)
  return `${pad(moment.getHours())}:${pad(moment.getMinutes())}`
}

function date(at) {
  const moment = new Date(at)
  return `${pad(moment.getMonth() + 1)}/${pad(moment.getDate())}`
}

/** dated formats the time of day, with the date unless it is today. */
function dated(at) {
  return new Date(at).toDateString() === new Date().toDateString() ? clock(at) : `${date(at)} ${clock(at)}`
}

/** when formats the time of a point, to the second if steps are small. */
function when(at, step) {
  return step < 60 ? `${dated(at)}:${pad(new Date(at).getSeconds())}` : `${date(at)} ${clock(at)}`
}

function shown(value, format) {
  return value === null || value === undefined ? '–' : format(value)
}

function summary({ times, series }, format) {
  if (times.length === 0) return t('chart.empty')
  return series.map(s => {
    const values = s.values.filter(value => value !== null)
    return values.length === 0 ? `${s.name} –` : t('chart.summary', { name: s.name, last: format(values.at(-1)), most: format(Math.max(...values)) })
  }).join('; ')
}

function table({ times, step, series }, title, format) {
  return h('table', {},
    h('caption', { class: 'unseen' }, title),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('column.time')), series.map(s => h('th', { scope: 'col', class: 'number' }, s.name)))),
    h('tbody', {}, times.map((at, i) => h('tr', {},
      h('th', { scope: 'row' }, when(at, step)), series.map(s => h('td', { class: 'number' }, shown(s.values[i], format)))))))
}

const counted = { 600: 'chart.calls.tenMinutes', 3600: 'chart.calls.hour' }

/** callsSeries returns calls per second, or per step if steps are long; failed calls on top of the others. */
export function callsSeries({ step, from, points }) {
  const unit = counted[step] ? 1 : step
  return {
    times: moments(step, from, points), step, title: counted[step] && t(counted[step]),
    series: [
      { name: t('series.ok'), tone: 'tone-calls', values: points.map(p => (p[0] - p[1]) / unit) },
      { name: t('series.failed'), tone: 'tone-failures', values: points.map(p => p[1] / unit) },
    ],
  }
}

/** latencySeries returns durations of calls in milliseconds; null where there were no calls. */
export function latencySeries({ step, from, points }) {
  const line = (name, i) => ({ name, tone: `tone-${name}`, values: points.map(p => p[i] ?? null) })
  return { times: moments(step, from, points), step, series: [line('p50', 2), line('p95', 3), line('p99', 4)] }
}

function moments(step, from, points) {
  const begin = new Date(from).getTime()
  return points.map((_, i) => begin + i * step * 1000)
}
