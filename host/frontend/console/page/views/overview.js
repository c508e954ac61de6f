// The overview: the state of hako, the traffic, and problems that need attention.
import { callsSeries, chart, latencySeries, sparkline } from '../chart.js'
import { h, put } from '../dom.js'
import { ago, milliseconds, number, percent, rate, t, term } from '../language.js'
import { badge, card, code, head, panel, when } from '../parts.js'
import { replicaTable } from '../replicas.js'
import { spanned } from '../span.js'
import { table } from '../table.js'

const places = { plugin: 'plugins', upstream: 'connections', credential: 'connections', audit: 'audit', reload: 'configuration', policy: 'configuration' }

export default function overview(page) {
  const build = h('p', { class: 'hint' })
  const stats = statistics()
  const problems = attention()
  const calls = chart({ title: t('chart.calls'), format: rate, stacked: true })
  const latency = chart({ title: t('chart.latency'), format: milliseconds })
  const top = topTools()
  const replicas = replicaTable()
  const charts = h('div', { class: 'pair' }, panel(calls.element), panel(latency.element))
  const machines = card(t('overview.replicas'), replicas.element)
  const span = spanned(page, async span => {
    const [series, busiest] = await Promise.all([page.get('series', { span }), page.get('series/top', { span, by: 'calls', limit: 8 })])
    stats.draw(series.points)
    calls.draw(callsSeries(series))
    latency.draw(latencySeries(series))
    top.update(busiest.items)
    charts.hidden = busiest.items.length === 0
    return series
  })
  put(page.root, head(t('nav.overview'), build, span), stats.element)
  page.poll(5000, async () => {
    const [now, processes] = await Promise.all([page.get('overview'), page.get('replicas')])
    put(build, t('overview.build', { version: now.build.version, since: ago(now.started) }))
    page.waiting(now.approvals.waiting)
    stats.update(now)
    problems.update(now.problems)
    machines.hidden = processes.items.length === 0
    replicas.update(processes.items)
    // The problems take no space if there are none: the sections below are shown once that is known, so that they do not jump.
    if (!charts.isConnected) page.root.append(problems.element, charts, h('div', { class: 'pair' }, card(t('overview.top'), top.element), machines))
  })
}

/** statistics shows the figures at the top, each with a link to its view. */
function statistics() {
  const calls = stat(t('stat.calls'), '#/calls')
  const failing = stat(t('stat.failing'), '#/errors')
  const latency = stat(t('stat.latency'), '#/tools')
  const approvals = stat(t('stat.approvals'), '#/approvals')
  const plugins = stat(t('stat.plugins'), '#/plugins')
  const upstreams = stat(t('stat.upstreams'), '#/connections')
  return {
    element: h('div', { class: 'stats' }, [calls, failing, latency, approvals, plugins, upstreams].map(s => s.element)),
    draw(points) {
      calls.draw(sparkline(points.map(p => p[0]), 'tone-calls'))
      failing.draw(sparkline(points.map(p => p[1]), 'tone-failures'))
      latency.draw(sparkline(points.map(p => p[3]), 'tone-p95'))
    },
    update(now) {
      const share = now.calls.perSecond > 0 ? now.calls.failuresPerSecond / now.calls.perSecond : 0
      const idle = now.plugins.pending + now.plugins.broken + now.plugins.conflict
      const { up, idle: resting, down } = now.upstreams
      calls.set(rate(now.calls.perSecond), t('stat.inFlight', { n: now.calls.inFlight }), '')
      failing.set(percent(share), t('stat.failed', { n: now.calls.failedLastMinute }), share > 0.05 ? 'bad' : '')
      latency.set(now.calls.p95Ms ? milliseconds(now.calls.p95Ms) : '–', 'p95', '')
      approvals.set(number(now.approvals.waiting), t('stat.waiting'), now.approvals.waiting ? 'warn' : '')
      plugins.set(number(now.plugins.active), idle ? t('stat.idle', { n: idle }) : t('stat.tools', { n: now.tools }), idle ? 'warn' : '')
      upstreams.set(number(up + resting), down ? t('stat.down', { n: down }) : t('stat.up'), down ? 'bad' : '')
    },
  }
}

function stat(label, href) {
  const value = h('span', { class: 'value' }, '–')
  const note = h('span', { class: 'note' })
  const line = h('span')
  const element = h('a', { class: 'stat', href }, h('span', { class: 'label' }, label), value, note, line)
  return {
    element,
    draw: spark => put(line, spark),
    set(figure, text, tone) {
      element.className = `stat ${tone}`
      put(value, figure)
      put(note, text)
    },
  }
}

/** attention lists the problems; it is empty if there are none. */
function attention() {
  const list = h('ul')
  const element = h('section', { class: 'card attention', hidden: true }, h('h2', {}, t('overview.attention')), list)
  let shown = ''
  return {
    element,
    update(problems) {
      if (JSON.stringify(problems) === shown) return
      shown = JSON.stringify(problems)
      element.hidden = problems.length === 0
      put(list, problems.map(problem => h('li', {},
        h('span', { class: 'badge warn' }, term('kind', problem.kind)), ' ',
        h('a', { href: problemPlace(problem) }, problem.name || term('kind', problem.kind)), ' ',
        problem.state && badge('state', problem.state),
        problem.text && h('p', {}, problem.text),
        problem.remedy && h('p', { class: 'hint' }, problem.remedy))))
    },
  }
}

function problemPlace({ kind, name }) {
  return `#/${places[kind] ?? 'overview'}${kind === 'plugin' && name ? `/${encodeURIComponent(name)}` : ''}`
}

function topTools() {
  return table({
    caption: t('overview.top'), rowKey: row => row.tool, empty: t('overview.quiet'),
    open: row => { location.hash = `#/tools/${encodeURIComponent(row.tool)}` },
    columns: [
      { label: t('column.tool'), cell: row => code(row.tool) },
      { label: t('column.calls'), class: 'number', cell: row => number(row.calls) },
      { label: t('column.failed'), class: 'number', cell: row => percent(row.calls ? row.failures / row.calls : 0) },
      { label: 'p95', class: 'number wide', cell: row => row.p95Ms === null || row.p95Ms === undefined ? '–' : milliseconds(row.p95Ms) },
      { label: t('column.course'), class: 'wide', cell: row => sparkline(row.spark, 'tone-calls') },
    ],
  })
}
