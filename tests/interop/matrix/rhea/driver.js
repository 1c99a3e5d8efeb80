// Does what it is asked for with rhea, and says one line of JSON a behaviour: node driver.js URL BEHAVIOUR...
'use strict';

const { say } = require('../../rhea/peer.js');

const known = Object.assign({}, require('./queues.js'), require('./topics.js'), require('./flows.js'), require('./times.js'), require('./defaults.js'));

const not_offered = { transaction: 'no link to a coordinator' };

async function show(url, name) {
    if (name in not_offered) return say({ behaviour: name, verdict: 'not offered', detail: not_offered[name] });
    try {
        const detail = await known[name](url, name);
        say({ behaviour: name, verdict: 'passed', detail: detail || '' });
    } catch (error) {
        say({ behaviour: name, verdict: 'failed', detail: String(error) });
    }
}

async function main() {
    const [url, ...names] = process.argv.slice(2);
    for (const name of names) await show(url, name);
    // What a failed behaviour has left open ends with the process.
    process.exit(0);
}

main();
