// How heavy the first page is, and how soon it can be used on a slow phone: a processor at a quarter of its speed, 1.6 Mbit/s and 150 ms there and
// back. That is what Lighthouse calls slow 4G. Weights and round trips are held to; times depend on the machine, so they are printed.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { clean, startChromium } from './chromium.mjs'
import { startHost, tokens } from './host.mjs'

const network = { offline: false, latency: 150, downloadThroughput: 1.6e6 / 8, uploadThroughput: 0.75e6 / 8 }
const slowdown = 4
const limit = 150_000

let chromium, host
before(async () => {
  chromium = await startChromium()
  host = await startHost()
})
after(async () => {
  await chromium.close()
  await host.stop()
})

/** phone opens a slow phone. prepare is run at full speed. */
async function phone(prepare, language) {
  const page = await chromium.open('about:blank', { size: 'phone', language })
  await prepare(page)
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.emulateNetworkConditions', network)
  await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown })
  return { page, forget: () => session.send('Network.clearBrowserCache') }
}

/** visit loads the console with an empty cache: when something is painted, when what is at usable is there, when the figures are, and how much came. */
async function visit({ page, forget }, usable, figures) {
  await page.goto('about:blank')
  await forget()
  await page.goto(host.url, { waitUntil: 'commit' })
  const since = selector => page.waitForFunction(selector => document.querySelector(selector) && performance.now(), selector, { polling: 'raf' })
  const [ready, complete] = await Promise.all([since(usable), since(figures)])
  return page.evaluate(async ([ready, complete]) => {
    while (!performance.getEntriesByName('first-contentful-paint').length) await new Promise(requestAnimationFrame)
    const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    const sum = name => entries.reduce((total, entry) => total + entry[name], 0)
    const painted = performance.getEntriesByName('first-contentful-paint')[0].startTime
    const named = [...document.querySelectorAll('link[rel=modulepreload]')].map(link => link.href)
    const late = entries.filter(({ name }) => name.endsWith('.js') && !named.includes(name)).map(({ name }) => name)
    return { late, painted, ready, complete, sent: sum('encodedBodySize'), whole: sum('decodedBodySize'), files: entries.length }
  }, [await ready.jsonValue(), await complete.jsonValue()])
}

const pages = { 'the login': ['en', '#token', '#token', async () => {}], 'the console': ['en', 'main h1', '.legend li', login], 'the console in Japanese': ['ja', 'main h1', '.legend li', login] }

for (const [name, [language, usable, figures, prepare]] of Object.entries(pages)) {
  test(`${name} is light`, async t => {
    const slow = await phone(prepare, language)
    const visits = []
    for (let i = 0; i < 5; i++) visits.push(await visit(slow, usable, figures))
    visits.sort((a, b) => a.ready - b.ready)
    const [best, , { late, painted, ready, complete, sent, whole, files }] = visits
    t.diagnostic(`${name}: painted after ${Math.round(painted)} ms, usable after ${Math.round(ready)} ms (best ${Math.round(best.ready)}), complete after ` +
      `${Math.round(complete)} ms; ${files} files, ${sent} bytes sent, ${whole} unpacked`)
    assert.ok(whole < limit, `${whole} bytes`)
    // The page, then all that it names: two round trips, without the processor's time. A script that it does not name takes another.
    assert.deepEqual(late, [])
    assert.ok(2 * network.latency + 1000 * sent / network.downloadThroughput < 1000, `${sent} bytes sent`)
    await clean(slow.page)
  })
}

async function login(page) {
  await page.goto(host.url)
  await page.locator('#token').fill(tokens.admin)
  await page.keyboard.press('Enter')
  await page.locator('.stat').first().waitFor()
}
