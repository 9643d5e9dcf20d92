// Added to a report by the browser test before the report's own scripts.
window.violations = [];
document.addEventListener('securitypolicyviolation', (event) => window.violations.push(event.blockedURI));
window.failures = [];
window.addEventListener('error', (event) => window.failures.push(String(event.message)));
