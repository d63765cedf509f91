from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute", "0003_outbox")]
    operations = [RunSqlFile("better_compute.store.schema", "0004_audit.sql", "0004_audit_down.sql")]
