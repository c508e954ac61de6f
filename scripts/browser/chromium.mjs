// Chromium for all specs: how it is started, what every page is watched for, and where screenshots go.
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { chromium } from 'playwright-core'

/** root is the repository. */
export const root = path.resolve(import.meta.dirname, '../..')

const shots = path.join(root, 'dist/browser')
// Only what hangs takes as long; node:test's own limit (browser.sh) is longer.
const patience = 120_000
// SLOWDOWN=8 makes pages as slow as that, which shows specs that do not wait for what they need.
const slowdown = Number(process.env.SLOWDOWN ?? 1)
const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync']

/** sizes are the windows that pages are looked at in. */
export const sizes = { desktop: { width: 1360, height: 900 }, phone: { width: 360, height: 740 } }

/** startChromium starts a browser with a profile of its own. open gives it another, with no cookies, and a page in it. */
export async function startChromium() {
  const home = await mkdtemp(path.join(tmpdir(), 'hako-browser-'))
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags, timeout: patience, env: { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home },
  })
  return {
    browser,
    async open(url, { size = 'desktop', language = 'en', theme = 'light', ...more } = {}) {
      const context = await browser.newContext({ viewport: sizes[size], locale: language, colorScheme: theme, reducedMotion: 'reduce', ...more })
      context.setDefaultTimeout(patience)
      const page = await context.newPage()
      watch(page)
      if (slowdown > 1) await (await context.newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: slowdown })
      await page.goto(url)
      return page
    },
    async close() {
      await browser.close()
      await rm(home, { recursive: true, force: true })
    },
  }
}

const trouble = new WeakMap()

/** watch collects what no page may do: break its content security policy, throw, or complain in the console. A page that throws is closed, which ends all waits. */
function watch(page) {
  const seen = []
  trouble.set(page, seen)
  page.on('pageerror', error => {
    const text = error.stack || String(error) // a syntax error has no stack
    seen.push(`error: ${text}`)
    console.error(`${page.url()}: ${text}`)
    void page.close()
  })
  page.on('dialog', dialog => {
    seen.push(`dialog: ${dialog.message()}`)
    dialog.dismiss()
  })
  page.on('console', message => {
    // What the network refuses is the spec's own doing, and shown by the page.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) seen.push(`console: ${message.text()}`)
  })
  page.addInitScript(() => {
    addEventListener('securitypolicyviolation', event => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`))
  })
}

/** clean fails if the page did what no page may, and closes it. */
export async function clean(page) {
  const seen = trouble.get(page)
  await page.context().close()
  assert.deepEqual(seen, [])
}

/** shoot takes a screenshot into dist/browser/NAME.png, in a window as high as the page. */
export async function shoot(page, name) {
  await mkdir(shots, { recursive: true })
  const size = page.viewportSize()
  const height = Math.min(await page.evaluate(() => document.documentElement.scrollHeight), 4000)
  if (height > size.height) await page.setViewportSize({ ...size, height })
  await page.screenshot({ path: path.join(shots, `${name}.png`), animations: 'disabled' })
  if (height > size.height) await page.setViewportSize(size)
}

/** visit goes to a view of the console by its address, such as "plugins/files", and resolves when the view before it is gone. */
export async function visit(page, view) {
  const left = await page.evaluateHandle(hash => {
    const shown = location.hash === hash ? null : document.querySelector('.view')
    location.hash = hash
    return shown
  }, `#/${view}`)
  await page.waitForFunction(shown => !shown?.isConnected, left)
}

/** answer presses a button of a question until it counts: buttons that have just moved, as below a banner that comes, take no press. */
export async function answer(question, name) {
  const button = question.getByRole('button', { name })
  for (let done = false; !done;) {
    await button.click()
    done = await Promise.race([
      button.waitFor({ state: 'detached' }).then(() => true),
      button.and(question.locator('button:enabled')).waitFor().then(() => false, () => true), // fails with the page, later
    ])
  }
}

const axeSource = readFile(path.join(import.meta.dirname, 'node_modules/axe-core/axe.min.js'), 'utf8')

/** accessible fails if axe-core finds what keeps somebody from using the page. */
export async function accessible(page, what) {
  const source = await axeSource
  const session = await page.context().newCDPSession(page)
  // The protocol evaluates outside of the page's content security policy.
  await session.send('Page.setBypassCSP', { enabled: false })
  await session.send('Runtime.evaluate', { expression: `${source}; undefined` })
  const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
    expression: `axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(r.violations))`, awaitPromise: true, returnByValue: true,
  })
  assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails))
  const violations = JSON.parse(result.value).map(v => `${v.impact} ${v.id}: ${v.nodes.map(n => `${n.target.join(' ')} ${n.any[0]?.message ?? ''}`).join('\n  ')}`)
  assert.deepEqual(violations, [], what)
}

/** uncut fails if a text or a placeholder that is no example of an address does not fit where it is, unless the whole of it is in its title. */
export async function uncut(page, what) {
  const cut = await page.evaluate(() => {
    const ruler = document.createElement('canvas').getContext('2d')
    const tooLong = input => {
      const style = getComputedStyle(input)
      ruler.font = style.font
      return ruler.measureText(input.placeholder).width > input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)
    }
    const hides = element => ['hidden', 'clip'].includes(getComputedStyle(element).overflowX) && element.scrollWidth > element.clientWidth + 1
    const texts = [...document.querySelectorAll('body *')].filter(element => !element.title && !element.matches('.unseen, .finder *, svg, .rows, input') && element.clientWidth > 1 && hides(element))
    return [...[...document.querySelectorAll('[placeholder]')].filter(input => input.clientWidth > 0 && !input.placeholder.startsWith('http') && tooLong(input)).map(input => input.placeholder), ...texts.map(element => element.textContent)]
  })
  assert.deepEqual(cut, [], `${what}: is cut`)
}

/** narrow fails if the page has to be scrolled sideways. */
export async function narrow(page, what) {
  const [wanted, has] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth])
  assert.ok(wanted <= has, `${what}: ${wanted} px wide in a window of ${has}`)
}
